"""Processes as ranks: how they start, what they tell, how they end; `mpedu.launch` uses them."""
