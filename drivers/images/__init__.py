"""The image of a deployment and its config drive: where they come from, and how the machine gets them."""
