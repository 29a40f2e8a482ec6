"""HugeCTR's module `hugectr.data`: where files are."""

from dataclasses import dataclass
from typing import Any

from tercel import _C
from tercel.hugectr.arguments import check_choice
from tercel.hugectr.enums import FileSystemType_t

__all__ = ["DataSource", "DataSourceParams"]


@dataclass(eq=False)
class DataSourceParams:
    """
    Where files are. Files on S3 and Google's storage are read by their URLs (s3://, gs://, https://), so that `server`
    and `port` are not needed. In older versions the first two arguments are `use_hdfs` and `namenode`.
    """

    source: FileSystemType_t = FileSystemType_t.Local
    server: str = "localhost"
    port: int = 9000
    use_hdfs: bool = False
    namenode: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.source, bool):
            self.use_hdfs, self.source = self.source, FileSystemType_t.Local
        if self.use_hdfs:
            self.source, self.server = FileSystemType_t.HDFS, self.namenode or self.server
        check_choice(self.source, FileSystemType_t, "DataSourceParams: source")


class DataSource:
    """Access to files elsewhere. Only Local is possible here: files are read where they are."""

    def __init__(self, data_source_params: DataSourceParams) -> None:
        self.params = data_source_params

    def move_to_local(self, *paths: Any) -> None:
        """Nothing for files of this machine; ConfigError for others, which are read by URL or copied by other tools."""
        if self.params.source is not FileSystemType_t.Local:
            raise _C.ConfigError(f"DataSource: move_to_local: files of {self.params.source.name} are not copied here; "
                                 "name them by s3://, gs:// or https:// in DataReaderParams, or copy them before")
