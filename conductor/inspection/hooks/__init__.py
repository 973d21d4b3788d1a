"""What can be made of an inventory: plug-ins, of which the option ``[inspector] hooks`` chooses some."""
