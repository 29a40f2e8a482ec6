// The few functions of libcurl that reading files by HTTP needs; the library is loaded at the first request. Private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tercel/data/http_headers_impl.h"

namespace tercel::data {

/**
 * Requests bytes [begin, begin + bytes) of a URL into `out`. A longer answer is cut off there. Redirects are followed.
 * TransientIoError where no answer came or it was cut; RuntimeError if libcurl is not installed.
 */
HttpResponse http_get(const std::string& url, int64_t begin, size_t bytes, void* out);

}  // namespace tercel::data
