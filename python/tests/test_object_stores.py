"""Datasets and input files of web servers, S3 and file systems of Python programs."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from object_stores import GoogleStore, WebServer, cut_connection, files_of, make_certificate, overloaded, s3_server, send

import tercel as tc
import tercel.data as td

ROWS = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "clicks")
    td.generate(path, rows=ROWS, seed=5)
    return path


@pytest.fixture
def web(folder):
    server = WebServer(files_of(folder, "clicks/"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def s3(folder):
    """A bucket with the dataset, in a child's environment and this one's."""
    import boto3
    with s3_server() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in {"AWS_ACCESS_KEY_ID": "id-of-test", "AWS_SECRET_ACCESS_KEY": "secret-of-test",
                            "AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1",
                            "AWS_EC2_METADATA_DISABLED": "true"}.items():
            patch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        client.create_bucket(Bucket="bucket")
        for name, content in files_of(folder, "data/clicks/").items():
            client.put_object(Bucket="bucket", Key=name, Body=content)
        yield client


def keys_of(dataset, part="train", **options):
    """All labels and keys of a part."""
    with dataset.batches(part, batch_size=256, **options) as reader:
        batches = list(reader)
    return (np.concatenate([b.labels.numpy() for b in batches]),
            np.concatenate([b["keys"].keys.numpy().ravel() for b in batches]))


def assert_same(found, expected):
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("ranges", [True, False])
def test_reads_a_dataset_by_http(web, folder, ranges):
    web.ranges = ranges
    dataset = td.open_dataset(web.url + "/clicks")
    assert dataset.train.rows == td.open_dataset(folder).train.rows
    for options in ({}, {"shuffle": True, "seed": 3}):
        assert_same(keys_of(dataset, **options), keys_of(td.open_dataset(folder), **options))
    assert td.verify_dataset(dataset) == []


def test_reads_a_description_by_its_url(web):
    assert td.open_dataset(web.url + "/clicks/dataset.json").test.rows > 0


@pytest.mark.parametrize("variable", ["CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_https_needs_a_certificate_that_is_known(folder, tmp_path, monkeypatch, variable):
    for name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    certificate = make_certificate(str(tmp_path / "server.pem"))
    server = WebServer(files_of(folder, "clicks/"), certificate)
    url = server.url + "/clicks"

    def assert_refused():
        with pytest.raises(tc.IoError, match=f"{url}/dataset.json: HTTP: .*certificate") as caught:
            td.open_dataset(url)
        assert "attempts" not in str(caught.value)  # it is not tried again
        assert not server.requests

    try:
        assert_refused()  # signed by nobody
        monkeypatch.setenv(variable, make_certificate(str(tmp_path / "other.pem")) + ".crt")
        assert_refused()
        monkeypatch.setenv(variable, certificate + ".crt")
        assert_same(keys_of(td.open_dataset(url)), keys_of(td.open_dataset(folder)))
        monkeypatch.setenv(variable, str(tmp_path / "absent.crt"))
        with pytest.raises(tc.IoError, match="absent.crt"):
            td.open_dataset(url)
    finally:
        server.close()


def test_https_certificate_of_another_host(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    certificate = make_certificate(str(tmp_path / "server.pem"), "127.0.0.2")
    server = WebServer(files_of(folder, "clicks/"), certificate)
    monkeypatch.setenv("CURL_CA_BUNDLE", certificate + ".crt")
    try:
        with pytest.raises(tc.IoError, match="HTTP: .*127.0.0.1"):
            td.open_dataset(server.url + "/clicks")
        assert not server.requests
    finally:
        server.close()


def test_reads_ranges_ahead_without_reading_twice(tmp_path):
    """Of a file in order, each byte is requested once, but for its header and the requests that ask for its size."""
    rows = 800_000
    pq.write_table(pa.table({"label": np.zeros(rows, np.float32), "a": np.arange(rows)}), tmp_path / "a.parquet")
    td.convert_dataset(td.open_files("parquet", train=[str(tmp_path / "a.parquet")], label=["label"],
                                     categorical=["a"]), tmp_path / "norm", format="norm")
    files = files_of(str(tmp_path / "norm"))
    web = WebServer(files)
    try:
        dataset = td.open_dataset(web.url)
        web.requests.clear()
        with dataset.batches("train", batch_size=4096) as reader:
            assert sum(batch.rows for batch in reader) == rows
        name = max(files, key=lambda name: len(files[name]))
        ranges = [[int(n) for n in request.split("bytes=")[1].split("-")] for request in web.requests
                  if request.startswith("/" + name)]
        large = [last - first + 1 for first, last in ranges if last > first]
        assert max(large) == 4 << 20
        assert len(files[name]) <= sum(large) <= 1.1 * len(files[name])
    finally:
        web.close()


@pytest.mark.parametrize("fault", [cut_connection, overloaded])
def test_repeats_requests_that_fail(web, folder, fault):
    dataset = td.open_dataset(web.url + "/clicks")
    web.faults = [fault, fault]
    assert_same(keys_of(dataset), keys_of(td.open_dataset(folder)))
    assert not web.faults


def test_gives_up_after_some_attempts(web):
    web.status = 503
    with pytest.raises(tc.IoError, match=r"clicks/dataset.json: HTTP: expected the file, found status 503 "
                                         r"\(after 4 attempts\)"):
        td.open_dataset(web.url + "/clicks")


@pytest.mark.parametrize("status, meaning", [(403, "access is denied"), (401, "user and password are needed")])
def test_names_url_and_status(web, status, meaning):
    web.status = status
    with pytest.raises(tc.IoError, match=f"{web.url}/clicks/dataset.json: .*found status {status} .{meaning}"):
        td.open_dataset(web.url + "/clicks")
    assert len(web.requests) == 1


def test_a_file_that_is_not_there(web):
    with pytest.raises(tc.DataError, match="/nothing: expected a folder with dataset.json, found none in it"):
        td.open_dataset(web.url + "/nothing")
    del web.files["clicks/test/part-0.data"]
    with pytest.raises(tc.DataError, match="clicks/test/part-0.data: expected a file of .* found nothing"):
        td.open_dataset(web.url + "/clicks")


def test_a_file_of_another_length(web):
    web.files["clicks/train/part-0.data"] += b"x"
    with pytest.raises(tc.DataError, match="part-0.data: expected .* bytes, as dataset.json says, found"):
        td.open_dataset(web.url + "/clicks")


@pytest.mark.parametrize("status, content_range, message", [
    (206, "bytes 7-11/{size}", "expected the bytes from .*, found those from 7"),
    (206, "bytes 0-4/*", "expected the size of the file in Content-Range, found none"),
    (206, "bytes 9-5/{size}", "expected the size of the file in Content-Range, found none"),
    (416, "bytes */{size}", r"status 416 \(the file has no such bytes\)"),
    (200, "bytes 0-4/{size}", r"expected the bytes from .*, found the whole file \(status 200\)"),
])
def test_wrong_ranges(web, status, content_range, message):
    """A server that answers with other bytes than those that were asked for, or does not say which they are."""
    dataset = td.open_dataset(web.url + "/clicks")
    content = web.files["clicks/train/part-0.data"]

    def elsewhere(request):
        if request.headers["Range"] == "bytes=0-0":  # asks for the size
            web.send_part(request, content, {})
        else:
            send(request, status, b"12345", {"Content-Range": content_range.format(size=len(content))})

    with dataset.batches("train", batch_size=256) as reader:
        web.faults = [elsewhere] * 20
        with pytest.raises(tc.IoError, match="HTTP: .*" + message):
            for _ in range(3):
                for _ in reader:
                    pass


def test_a_server_that_says_no_size(web):
    def sizeless(request):
        send(request, 206, b"1", {"Content-Range": "bytes 0-0/*"})

    web.faults = [sizeless]
    with pytest.raises(tc.IoError, match="dataset.json: HTTP: expected the size of the file in Content-Range, found none"):
        td.open_dataset(web.url + "/clicks")


@pytest.mark.parametrize("change", ["tag", "size", "removed"])
def test_a_file_that_changes_while_it_is_read(web, change):
    name = "clicks/train/part-0.data"
    web.tags[name] = '"one"'
    dataset = td.open_dataset(web.url + "/clicks")
    reader = dataset.batches("train", batch_size=64)
    next(iter(reader))
    if change == "tag":
        web.tags[name] = '"two"'
    elif change == "size":
        web.files[name] = web.files[name][:-8]
    else:
        del web.files[name]
    with pytest.raises(tc.DataError, match="part-0.data.*expected the file as it was when reading began, found"):
        for _ in range(3):
            for _ in reader:
                pass
    reader.close()


def test_a_large_file_of_a_server_without_ranges(web):
    web.ranges = False
    web.files["clicks/dataset.json"] = bytes(65 << 20)
    with pytest.raises(tc.IoError, match="expected a server that answers requests for ranges, found one that sends"):
        td.open_dataset(web.url + "/clicks")


def test_no_answer_ends_in_time(web, monkeypatch):
    monkeypatch.setenv("TERCEL_REMOTE_TIMEOUT", "1")
    web.hang.set()
    start = time.monotonic()
    with pytest.raises(tc.IoError, match=r"expected an answer within 1 s \(TERCEL_REMOTE_TIMEOUT\), found none"):
        td.open_dataset(web.url + "/clicks")
    assert time.monotonic() - start < 10
    monkeypatch.setenv("TERCEL_REMOTE_TIMEOUT", "soon")
    with pytest.raises(tc.ConfigError, match="TERCEL_REMOTE_TIMEOUT: expected a number of seconds"):
        td.open_dataset(web.url + "/clicks")


def test_the_time_limit_is_for_silence(web, folder, monkeypatch):
    monkeypatch.setenv("TERCEL_REMOTE_TIMEOUT", "1")
    dataset = td.open_dataset(web.url + "/clicks")
    web.pause = 0.3
    start = time.monotonic()
    assert_same(keys_of(dataset), keys_of(td.open_dataset(folder)))
    assert time.monotonic() - start > 2


def test_names_of_files_are_quoted(tmp_path, folder):
    """A file's name may have characters that have another meaning in a URL."""
    import json
    import shutil
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    name = "a b#c?d%41 é.data"
    (copy / "train" / "part-0.data").rename(copy / name)
    description = json.loads((copy / "dataset.json").read_text())
    text = (copy / "dataset.json").read_text().replace("train/part-0.data", name)
    assert description != json.loads(text)
    (copy / "dataset.json").write_text(text, encoding="utf-8")
    web = WebServer(files_of(str(copy), "my data/"))
    try:
        assert_same(keys_of(td.open_dataset(web.url + "/my%20data")), keys_of(td.open_dataset(folder)))
    finally:
        web.close()


def test_packed_content_is_refused(web):
    web.faults = 4 * [lambda request: send(request, 200, b"packed", {"Content-Encoding": "gzip"})]
    with pytest.raises(tc.IoError, match=r"found them packed \(Content-Encoding: gzip\)"):
        td.open_dataset(web.url + "/clicks")


def test_ctrl_c_ends_a_wait(web):
    web.hang.set()
    code = f"""
import os, signal, threading
import tercel.data as td
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    td.open_dataset({web.url!r} + "/clicks")
except KeyboardInterrupt:
    print("interrupted")
"""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert done.stdout == "interrupted\n", done.stderr
    assert time.monotonic() - start < 30


@pytest.mark.parametrize("shuffle", [False, True])
def test_closing_a_reader_ends_its_waits(tmp_path, shuffle):
    """Also those of threads of the pool, which read row groups that are shuffled."""
    rows = 200_000
    keys = np.random.default_rng(1).integers(0, 1 << 40, rows)
    pq.write_table(pa.table({"label": np.ones(rows, np.float32), "a": keys}), tmp_path / "a.parquet",
                   row_group_size=rows // 8, use_dictionary=False)
    web = WebServer(files_of(str(tmp_path)))

    class Enough(Exception):
        pass

    def interrupt(*_):
        raise Enough

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        dataset = td.open_files("parquet", train=[web.url + "/a.parquet"], label=["label"], categorical=["a"])
        reader = dataset.batches("train", batch_size=64, shuffle=shuffle)
        web.hang.set()
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Enough):
            next(iter(reader))
        start = time.monotonic()
        reader.close()
        assert time.monotonic() - start < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        web.close()


def test_forked_children_do_not_share_connections(web, folder):
    """Children of a process that has read, and keeps its connection."""
    code = f"""
import os, signal, sys
import tercel.data as td
dataset = td.open_dataset({web.url!r} + "/clicks")
def read():
    with dataset.batches("train", batch_size=64) as reader:
        return sum(float(batch.labels.sum()) for batch in reader)
expected = read()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(50)
        os._exit(0 if all(read() == expected for _ in range(3)) else 1)
    children.append(child)
assert all(read() == expected for _ in range(3))
sys.exit(max(os.waitpid(child, 0)[1] for child in children) != 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_parquet_files_of_a_web_server(tmp_path):
    table = pa.table({"label": np.ones(100, np.float32), "a": np.arange(100)})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "list.txt").write_text("1\na.parquet\n")
    web = WebServer(files_of(str(tmp_path)))
    try:
        for train in (web.url + "/a.parquet", web.url + "/list.txt"):
            dataset = td.open_files("parquet", train=[train], label=["label"], categorical=["a"])
            assert keys_of(dataset)[1].tolist() == list(range(100))
            described = td.open_files("parquet", train=[train], label=["label"], categorical=["a"],
                                      folder=tmp_path / "described", replace=True)
            assert keys_of(td.open_dataset(described.folder))[1].tolist() == list(range(100))
        with pytest.raises(tc.ConfigError, match="web servers do not list folders"):
            td.open_files("parquet", train=[web.url + "/*.parquet"], label=["label"], categorical=["a"])
    finally:
        web.close()


def test_text_files_of_a_web_server(tmp_path):
    import gzip
    text = b"label,x,c\n" + b"".join(b"%d,%d,%d\n" % (i % 2, i, i % 7) for i in range(5000))
    web = WebServer({"t.csv": text, "t.csv.gz": gzip.compress(text)})
    (tmp_path / "t.csv").write_bytes(text)
    try:
        expected = None
        for source in (str(tmp_path / "t.csv"), web.url + "/t.csv", web.url + "/t.csv.gz"):
            made = td.convert_csv([source], tmp_path / "made", replace=True, label="label", dense=["x"],
                                  categorical=["c"], min_count=["1"]).dataset
            expected = expected or keys_of(made)
            assert_same(keys_of(made), expected)
        described = td.convert_dataset(td.open_dataset(made.folder), tmp_path / "raw", format="raw")
        web.files.update(files_of(described.folder, "raw/"))
        copied = td.convert_dataset(td.open_dataset(web.url + "/raw"), tmp_path / "copied", format="norm")
        assert (tmp_path / "copied" / "vocabulary.bin").read_bytes() == (tmp_path / "made" / "vocabulary.bin").read_bytes()
        assert_same(keys_of(copied), expected)
        with pytest.raises(tc.ConfigError, match="expected a path of this machine to write to, found a URL"):
            td.convert_csv([web.url + "/t.csv"], web.url + "/made", label="label", dense=["x"])
    finally:
        web.close()


def test_ratings_of_a_web_server(tmp_path):
    lines = [f"{user}::{item}::{user % 5 + 1}::{item}" for user in range(9) for item in range(user, user + 30)]
    web = WebServer({"ratings.dat": "\n".join(lines).encode()})
    (tmp_path / "ratings.dat").write_text("\n".join(lines))
    try:
        found = [td.convert_movielens([source], tmp_path / name, test_negatives=5).dataset
                 for source, name in ((web.url + "/ratings.dat", "web"), (str(tmp_path / "ratings.dat"), "local"))]
        assert_same(keys_of(found[0]), keys_of(found[1]))
    finally:
        web.close()


def test_secrets_are_not_quoted():
    for url in ("https://user:secret@host/clicks", "http://host/clicks?signature=secret", "s3://id:secret@bucket/x",
                "gs://secret@bucket/x"):
        with pytest.raises(tc.ConfigError) as caught:
            td.open_dataset(url)
        assert "secret" not in str(caught.value) and "URL without" in str(caught.value)


def test_a_scheme_that_nobody_knows():
    with pytest.raises(tc.IoError, match="stone://x/dataset.json: ValueError: Protocol not known"):
        td.open_dataset("stone://x")


def test_reads_a_dataset_of_s3(s3, folder):
    dataset = td.open_dataset("s3://bucket/data/clicks")
    for options in ({}, {"shuffle": True, "seed": 3}):
        assert_same(keys_of(dataset, **options), keys_of(td.open_dataset(folder), **options))
    assert td.verify_dataset(dataset) == []


def test_folders_and_patterns_of_s3(s3):
    for i in range(3):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"label": np.ones(10, np.float32), "a": np.arange(10) + 10 * i}), sink)
        s3.put_object(Bucket="bucket", Key=f"p/part-{i}.parquet", Body=sink.getvalue().to_pybytes())
    s3.put_object(Bucket="bucket", Key="p/list.txt", Body=b"2\npart-0.parquet\ns3://bucket/p/part-2.parquet\n")
    whole = list(range(30))
    for train, expected in (("s3://bucket/p", whole), ("s3://bucket/p/", whole), ("s3://bucket/p/part-[12]*", whole[10:]),
                            ("s3://bucket/p/list.txt", whole[:10] + whole[20:])):
        dataset = td.open_files("parquet", train=[train], label=["label"], categorical=["a"])
        assert keys_of(dataset)[1].tolist() == expected
    for train in ("s3://bucket/p/x*.parquet", "s3://bucket/q/"):
        with pytest.raises(tc.IoError, match=train.replace("*", r"\*")):
            td.open_files("parquet", train=[train], label=["label"], categorical=["a"])


def test_s3_errors_name_the_url_and_no_secret(s3):
    for url in ("s3://bucket/nothing", "s3://no-such-bucket/x"):
        with pytest.raises((tc.IoError, tc.DataError), match=url) as caught:
            td.open_dataset(url)
        assert "secret-of-test" not in str(caught.value)


def test_an_object_that_changes_while_it_is_read(s3, folder):
    for name, content in files_of(folder, "other/").items():
        s3.put_object(Bucket="bucket", Key=name, Body=content)
    with td.open_dataset("s3://bucket/other").batches("train", batch_size=64) as reader:
        next(iter(reader))
        content = bytearray(files_of(folder, "other/")["other/train/part-0.data"])
        content[-1] ^= 1
        s3.put_object(Bucket="bucket", Key="other/train/part-0.data", Body=bytes(content))
        with pytest.raises(tc.DataError, match="expected the file as it was when reading began, found it replaced"):
            for _ in range(3):
                for _ in reader:
                    pass


@pytest.fixture
def google(folder, monkeypatch):
    server = GoogleStore(files_of(folder, "data/clicks/"))
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    yield server
    server.close()


def test_reads_a_dataset_of_google(google, folder):
    dataset = td.open_dataset("gs://bucket/data/clicks")
    for options in ({}, {"shuffle": True, "seed": 3}):
        assert_same(keys_of(dataset, **options), keys_of(td.open_dataset(folder), **options))
    assert td.verify_dataset(dataset) == []
    assert any("alt=media" in request for request in google.requests)


def test_folders_and_patterns_of_google(google):
    for i in range(3):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"label": np.ones(10, np.float32), "a": np.arange(10) + 10 * i}), sink)
        google.files[f"p/part-{i}.parquet"] = sink.getvalue().to_pybytes()
    for train, expected in (("gs://bucket/p", range(30)), ("gs://bucket/p/part-[12]*", range(10, 30))):
        dataset = td.open_files("parquet", train=[train], label=["label"], categorical=["a"])
        assert keys_of(dataset)[1].tolist() == list(expected)


def test_errors_of_google(google):
    with pytest.raises(tc.DataError, match="gs://bucket/nothing: expected a folder with dataset.json, found none"):
        td.open_dataset("gs://bucket/nothing")
    google.status = 403
    with pytest.raises(tc.IoError, match="gs://bucket/data/clicks/dataset.json: Arrow: .*no object") as caught:
        td.open_dataset("gs://bucket/data/clicks")
    assert "attempts" not in str(caught.value)


def test_an_object_of_google_that_changes_while_it_is_read(google):
    name = "data/clicks/train/part-0.data"
    with td.open_dataset("gs://bucket/data/clicks").batches("train", batch_size=64) as reader:
        next(iter(reader))
        content = bytearray(google.files[name])
        content[-1] ^= 1
        google.files[name] = bytes(content)
        google.tags[name] = "2"
        with pytest.raises((tc.DataError, tc.IoError), match="part-0.data: .*(found it replaced|no such generation)"):
            for _ in range(3):
                for _ in reader:
                    pass


def test_fsspec_by_url(folder):
    import fsspec
    memory = fsspec.filesystem("memory")
    for name, content in files_of(folder).items():
        memory.pipe_file("/clicks/" + name, content)
    dataset = td.open_dataset("memory://clicks")
    assert_same(keys_of(dataset, shuffle=True, seed=1), keys_of(td.open_dataset(folder), shuffle=True, seed=1))


def test_registered_file_systems(folder):
    import fsspec
    td.register_filesystem("mine", fsspec.filesystem("file"))
    td.register_filesystem("arrows", pyarrow.fs.LocalFileSystem())
    for scheme in ("mine", "arrows"):
        dataset = td.open_dataset(f"{scheme}://{folder}")
        assert_same(keys_of(dataset), keys_of(td.open_dataset(folder)))
        with pytest.raises(tc.DataError, match="found none in it"):
            td.open_dataset(f"{scheme}://{folder}/nothing")
    with pytest.raises(ValueError, match="expected a scheme such as 'store', found 'No:'"):
        td.register_filesystem("No:", fsspec.filesystem("file"))
    with pytest.raises(TypeError, match="expected a file system of fsspec or pyarrow.fs, not int"):
        td.register_filesystem("mine", 3)


def test_errors_of_a_file_system(folder):
    class Broken:
        def info(self, path):
            return {"type": "file", "size": 10, "name": path}

        def invalidate_cache(self):
            pass

        def cat_file(self, path, start, end):
            raise PermissionError("not today")

    td.register_filesystem("broken", Broken())
    with pytest.raises(tc.IoError, match="broken://x/dataset.json: PermissionError: not today"):
        td.open_dataset("broken://x")


@pytest.mark.parametrize("size", [-1, -(1 << 63)])
def test_a_size_that_is_none(size):
    class Hostile:
        def info(self, path):
            return {"type": "file", "size": size, "name": path}

        def invalidate_cache(self):
            pass

        def cat_file(self, path, start, end):
            return b""

    td.register_filesystem("hostile", Hostile())
    with pytest.raises(tc.IoError, match=f"hostile://x/dataset.json: expected a file with a size, found {size} bytes"):
        td.open_dataset("hostile://x")
    with pytest.raises(tc.IoError, match=f"hostile://x.parquet: expected a file with a size, found {size} bytes"):
        td.open_files("parquet", train=["hostile://x.parquet"], label=["label"], categorical=["a"])


def test_s3_that_cannot_be_reached_is_named_and_left_at_once():
    """A server that refuses, and one that does not answer, whose request is under way when the program ends."""
    silent = socket.create_server(("127.0.0.1", 0))
    code = """
import tercel as tc
import tercel.data as td
try:
    td.open_dataset("s3://bucket/clicks")
except tc.IoError as error:
    print(error, flush=True)
"""
    silent_url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    for url, timeout, message in (("http://127.0.0.1:1", "60", "NETWORK_CONNECTION"), (silent_url, "1", "within 1 s")):
        environment = {**os.environ, "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
                       "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
                       "TERCEL_REMOTE_TIMEOUT": timeout}
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False,
                              env=environment)
        assert done.returncode == 0 and message in done.stdout, done.stdout + done.stderr
        assert time.monotonic() - start < 40
    silent.close()


def test_the_file_of_a_registered_file_system_shrinks():
    class Shrinks:
        def info(self, path):
            return {"type": "file", "size": 10, "name": path}

        def invalidate_cache(self):
            pass

        def cat_file(self, path, start, end):
            return b"123"

    td.register_filesystem("shrinks", Shrinks())
    with pytest.raises(tc.IoError, match=r"shrinks://x/dataset.json: expected 10 bytes at byte 0, found 3"):
        td.open_dataset("shrinks://x")
