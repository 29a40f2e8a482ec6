// What an HTTP server says before the content of a file. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tercel::data {

/** What a server answered. */
struct HttpResponse {
  long status = 0;
  std::string etag;
  std::string last_modified;
  std::string content_encoding;  // how the content is packed; empty: it is not
  int64_t content_length = -1;   // -1: not said
  int64_t range_begin = -1;      // of Content-Range; -1: not said, or not so that it can be
  int64_t total = -1;            // of Content-Range: bytes of the whole file
  size_t received = 0;           // bytes of the content
};

/**
 * Takes what one line of the headers says, with or without its end; lines that say nothing of the file are passed over.
 * A status line begins the answer anew: it follows a redirect.
 */
void read_http_header(std::string_view line, HttpResponse& response);

}  // namespace tercel::data
