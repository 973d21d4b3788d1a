"""Options of [oci]: registries of containers that images come from."""

from oslo_config import cfg

OCI: list[cfg.Opt] = [
    cfg.StrOpt(
        "authentication_config",
        help="File of each conductor's host with secrets for registries, as container tools have it: an object auths "
        'of host -> {"auth": secret}, the secret being user:password in base64, or a token. It is read at each use. '
        "Users' own secrets (image_pull_secret) go before it. What such a secret opens, all users can deploy.",
    ),
    cfg.ListOpt(
        "secure_cdn_registries",
        default=["registry.redhat.io", "registry.access.redhat.com", "docker.io", "registry-1.docker.io"],
        help="Hosts, or domains, to which a registry may send the conductor on together with the token for the "
        "registry. All others are asked without it.",
    ),
    cfg.BoolOpt(
        "permit_fallback_to_http_transport",
        default=False,
        help="Ask a registry by http where https does not work. INSECURE: everyone in between reads the secrets, and "
        "can answer instead.",
    ),
    cfg.StrOpt(
        "verify_ca",
        help="What verifies registries: true, the well-known authorities; false, nothing; or a file with authorities. "
        "Unset: [DEFAULT] webserver_verify_ca.",
    ),
]
