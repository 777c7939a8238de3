"""Writes the tables of PyIceberg: python make.py URI, against a catalog whose warehouse `gen` is at file:///w/main."""
import sys
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.table.statistics import StatisticsFile

catalog = RestCatalog("gen", uri=sys.argv[1], warehouse="gen")
catalog.create_namespace_if_not_exists("ns")
for version, codec in (("1", "null"), ("2", "gzip")):
    schema = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "city", StringType(), required=False))
    table = catalog.create_table(
        f"ns.python{version}", schema, location=f"file:///w/main/python{version}",
        partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city")),
        properties={"format-version": version, "write.avro.compression-codec": codec},
    )
    rows = lambda *ids: pa.table({"id": pa.array(ids, pa.int64()), "city": ["Tromso" if i % 2 else "Narvik" for i in ids]})
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    table.delete("id = 3")
    table.overwrite(rows(5))
    if version == "2":
        snapshot = table.current_snapshot().snapshot_id
        path = "file:///w/main/python2/metadata/stats.puffin"
        open(path.removeprefix("file://"), "wb").write(b"PFA1")
        with table.update_statistics() as update:
            update.set_statistics(StatisticsFile(snapshot_id=snapshot, statistics_path=path, file_size_in_bytes=4, file_footer_size_in_bytes=0, blob_metadata=[]))
    print(table.metadata_location)
