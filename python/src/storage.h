// Lets the deleter of peers distinguish a storage's object from a tensor's.
#pragma once

namespace tercel::python {

bool is_storage_object(void* peer);
/** Takes the dying storage out of its object. */
void disown_storage(void* peer);

}  // namespace tercel::python
