"""How people and programs are told: a module for each channel, loaded when it is used first."""
