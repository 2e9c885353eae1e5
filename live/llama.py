"""Serve a GGUF file with llama.cpp's own server: run by the Python of `.live/served`.

It is what a person with a local model has: chat templates and tool calls are read by
llama.cpp itself, and a prompt that begins like the last one is not read again.
"""

from __future__ import annotations

import signal
import sys
from typing import Any


def main(model: str, name: str, port: int, context_length: int, threads: int) -> None:
    """Serve until told to end."""
    import xllamacpp  # pyright: ignore[reportMissingImports]

    llama: Any = xllamacpp
    params: Any = llama.CommonParams()
    params.model.path = model
    params.model_alias = {name}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel, params.n_predict = context_length, 1, 1_024
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja, params.warmup = True, False
    server: Any = llama.Server(params)
    print(f"serving at {server.listening_address}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
