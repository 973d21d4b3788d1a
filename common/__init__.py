"""What every other part of Ingot uses and what uses none of them."""

import warnings

# Libraries import eventlet where it is installed, and use none of it here: operators can do nothing about that.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated", append=True)
