"""Options of the group [glance]: where images are asked for, and as whom; and how URLs of Swift are signed for agents.

They come from a large library, so that a process has them only if some are set.
"""

from keystoneauth1 import loading
from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    *loading.get_auth_common_conf_options(),
    *loading.get_session_conf_options(),
    *loading.get_adapter_conf_options(include_deprecated=False),
    cfg.StrOpt(
        "swift_temp_url_key",
        secret=True,
        help="Key of Swift's account (X-Account-Meta-Temp-URL-Key) with which URLs of images are signed. It is needed "
        "where images are downloaded from Swift: [agent] image_download_source, or a node's.",
    ),
    cfg.URIOpt(
        "swift_endpoint_url",
        schemes=["http", "https"],
        help="Swift as agents reach it, without the version, such as https://swift.example.com; for a gateway of Ceph "
        "with /swift at the end.",
    ),
    cfg.StrOpt("swift_api_version", default="v1", help="The version in URLs of Swift."),
    cfg.StrOpt(
        "swift_account",
        help="Account in which Glance keeps its images, such as AUTH_a422b291f32f46748b7d7c9e8958f5d3.",
    ),
    cfg.StrOpt("swift_container", default="glance", help="Container in which Glance keeps its images."),
    cfg.IntOpt(
        "swift_store_multiple_containers_seed",
        default=0,
        min=0,
        max=32,
        help="As the option of that name of Glance's: how many characters of an image's id are in the name of its "
        "container. 0: one container has all images.",
    ),
    cfg.IntOpt(
        "swift_temp_url_duration", default=1200, min=1, help="Seconds for which a signed URL of an image can be used."
    ),
    cfg.IntOpt(
        "swift_temp_url_expected_download_start_delay",
        default=0,
        min=0,
        help="Seconds that pass at most until an agent uses its URL. swift_temp_url_duration must be as long at least.",
    ),
    cfg.BoolOpt(
        "swift_temp_url_cache_enabled",
        default=False,
        help="Whether an image has one URL for all agents of some time, so that a cache before Swift has it once. URLs "
        "are valid for up to twice swift_temp_url_duration then.",
    ),
]

# The timeout, after which Glance counts as away, is shorter than a request waits for a conductor.
cfg.set_defaults(OPTIONS, service_type="image", valid_interfaces=["internal", "public"], timeout=20)
