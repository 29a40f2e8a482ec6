#include <cuda_runtime_api.h>

#include "tercel/core/cuda_allocators.h"
#include "tercel/util/error.h"

namespace tercel {

namespace {

cudaError_t allocate_device(void** p, size_t nbytes) { return cudaMalloc(p, nbytes); }
cudaError_t allocate_managed(void** p, size_t nbytes) { return cudaMallocManaged(p, nbytes, cudaMemAttachGlobal); }
cudaError_t allocate_pinned(void** p, size_t nbytes) { return cudaHostAlloc(p, nbytes, cudaHostAllocDefault); }

// Errors are ignored: they are those of earlier kernels, which have their own checks, or of a driver that shut down
// before a static destructor frees its blocks.
void free_on_device(void* p) { cudaFree(p); }
void free_pinned(void* p) { cudaFreeHost(p); }

class CudaMemory final : public Allocator {
 public:
  constexpr CudaMemory(const char* name, cudaError_t (*take)(void**, size_t), DataPtr::Deleter give_back, DeviceType of)
      : name_(name), take_(take), give_back_(give_back), of_(of) {}

  DataPtr allocate(size_t nbytes) override {
    int index = -1;
    check(cudaGetDevice(&index), nbytes);
    const Device device = of_ == DeviceType::Cuda ? Device(of_, static_cast<int8_t>(index)) : Device(of_);
    if (nbytes == 0) return DataPtr(nullptr, device);
    void* p = nullptr;
    check(take_(&p, nbytes), nbytes);
    return DataPtr(p, p, give_back_, device);
  }
  DataPtr::Deleter raw_deleter() const override { return give_back_; }

 private:
  void check(cudaError_t error, size_t nbytes) const {
    if (error == cudaSuccess) return;
    cudaGetLastError();  // else the next launch would report this error
    TERCEL_CHECK(error != cudaErrorNoDevice && error != cudaErrorInsufficientDriver, RuntimeError, name_,
                 ": there is no CUDA device to allocate ", nbytes, " bytes for: ", cudaGetErrorString(error));
    TERCEL_CHECK(error != cudaErrorMemoryAllocation, OutOfMemoryError, "out of memory: ", name_, " cannot allocate ",
                 nbytes, " bytes");
    throw_error<RuntimeError>({name_, ": cannot allocate ", nbytes, " bytes: ", cudaGetErrorString(error)});
  }

  const char* name_;
  cudaError_t (*take_)(void**, size_t);
  DataPtr::Deleter give_back_;
  DeviceType of_;
};

// Never destroyed: blocks may be freed while the program exits.
constinit CudaMemory g_device("cuda_allocator", &allocate_device, &free_on_device, DeviceType::Cuda);
constinit CudaMemory g_managed("cuda_managed_allocator", &allocate_managed, &free_on_device, DeviceType::Cuda);
constinit CudaMemory g_pinned("cuda_host_allocator", &allocate_pinned, &free_pinned, DeviceType::Cpu);

}  // namespace

Allocator& cuda_allocator() { return g_device; }
Allocator& cuda_managed_allocator() { return g_managed; }
Allocator& cuda_host_allocator() { return g_pinned; }

}  // namespace tercel
