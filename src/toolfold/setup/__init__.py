"""Setting the gateway up: the clients there are, taking their servers over, and entering it."""
