// The few functions of libcurl that reading files by HTTP needs; the library is loaded at the first request. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tercel::data {

/** What a server answered. */
struct HttpResponse {
  long status = 0;
  std::string etag;
  std::string last_modified;
  int64_t content_length = -1;  // -1: not said
  int64_t range_begin = -1;     // of Content-Range
  int64_t total = -1;           // of Content-Range: bytes of the whole file
  size_t received = 0;          // bytes of the content
};

/**
 * Requests bytes [begin, begin + bytes) of a URL into `out`. A longer answer is cut off there. Redirects are followed.
 * TransientIoError where no answer came or it was cut; RuntimeError if libcurl is not installed.
 */
HttpResponse http_get(const std::string& url, int64_t begin, size_t bytes, void* out);

}  // namespace tercel::data
