"""A running gateway asked by its user: a socket in `serve.state_dir`, and who asks there."""
