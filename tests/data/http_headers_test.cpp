#include "tercel/data/http_headers_impl.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace tercel::data::test {
namespace {

HttpResponse read(std::initializer_list<std::string_view> lines) {
  HttpResponse response;
  for (const std::string_view line : lines) read_http_header(line, response);
  return response;
}

TEST(HttpHeaders, ThoseOfAPartOfAFile) {
  const HttpResponse response =
      read({"HTTP/1.1 206 Partial Content\r\n", "ETag: \"a b\" \r\n", "LAST-MODIFIED:Thu, 01 Jan 2026 10:00:00 GMT\r\n",
            "content-length: 100\r\n", "Content-Range: Bytes 200-299/1000\r\n", "X: y\r\n", "\r\n"});
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.etag, "\"a b\"");
  EXPECT_EQ(response.last_modified, "Thu, 01 Jan 2026 10:00:00 GMT");
  EXPECT_EQ(response.content_length, 100);
  EXPECT_EQ(response.range_begin, 200);
  EXPECT_EQ(response.total, 1000);
}

TEST(HttpHeaders, AStatusLineBeginsAnew) {
  const HttpResponse response = read({"HTTP/1.1 302 Found", "ETag: x", "Content-Length: 7", "HTTP/2 200", "etag: y"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.etag, "y");
  EXPECT_EQ(response.content_length, -1);
  EXPECT_EQ(read({"HTTP/1.1"}).status, 0);
  EXPECT_EQ(read({"HTTP/1.1 two hundred"}).status, 0);
  EXPECT_EQ(read({"HTTP/1.1 -20"}).status, 0);
  EXPECT_EQ(read({"HTTP/1.1 99999999999"}).status, 0);
}

TEST(HttpHeaders, RangesThatCannotBe) {
  const auto expect_range = [](std::string_view value, int64_t begin, int64_t total) {
    SCOPED_TRACE(value);
    const HttpResponse response = read({"HTTP/1.1 206", "Content-Range: " + std::string(value)});
    EXPECT_EQ(response.range_begin, begin);
    EXPECT_EQ(response.total, total);
  };
  expect_range("bytes 0-0/1", 0, 1);
  expect_range("bytes 5-9/*", 5, -1);
  expect_range("bytes */1000", -1, 1000);
  expect_range("bytes */*", -1, -1);
  for (const char* wrong :
       {"", "bytes", "bytes ", "bytes 0-9", "bytes 0-9/", "bytes 0-9/x", "bytes 0-9/10x", "bytes 9-0/10",
        "bytes 0-10/10", "bytes 0/10", "bytes /10", "bytes -9/10", "bytes -1-9/10", "bytes 0-9/-10", "bytes 0--9/10",
        "rows 0-9/10", "bytes 0-9/9223372036854775808", "bytes 99999999999999999999-9/10", "bytes 0-9/1-0"})
    expect_range(wrong, -1, -1);
  expect_range("bytes 0-9/9223372036854775807", 0, 9223372036854775807);
}

TEST(HttpHeaders, LengthsThatAreNone) {
  for (const char* wrong : {"", "-1", "+1", "1x", "0x10", "1, 1", "9223372036854775808"})
    EXPECT_EQ(read({"HTTP/1.1 200", "Content-Length: " + std::string(wrong)}).content_length, -1) << wrong;
  EXPECT_EQ(read({"HTTP/1.1 200", "Content-Length:0"}).content_length, 0);
}

}  // namespace
}  // namespace tercel::data::test
