// A C interface to RocksDB's HyperClockCache, for Rust: lookup, pin and insert. Each function is one
// call of the public interface, or two for a lookup with a value, so that it adds little to the
// measurement. It supports the interface before and since 8.0.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "rocksdb/cache.h"
#include "rocksdb/version.h"
#if ROCKSDB_MAJOR >= 8
#include "rocksdb/advanced_cache.h"
#endif

namespace rocks = ROCKSDB_NAMESPACE;

// Returns a value to Rust, which allocated it.
extern "C" void hyperclock_drop(uint8_t* page, size_t bytes) noexcept;

namespace {

// A deleter does not get the length of the value, so there is a deleter for each length.
#if ROCKSDB_MAJOR >= 8
using Deleter = const rocks::Cache::CacheItemHelper*;

template <size_t Bytes>
void Drop(rocks::Cache::ObjectPtr page, rocks::MemoryAllocator*) {
  hyperclock_drop(static_cast<uint8_t*>(page), Bytes);
}

template <size_t Bytes>
Deleter DeleterOf() {
  static const rocks::Cache::CacheItemHelper helper(rocks::CacheEntryRole::kDataBlock,
                                                    &Drop<Bytes>);
  return &helper;
}
#else
using Deleter = rocks::Cache::DeleterFn;

template <size_t Bytes>
void Drop(const rocks::Slice&, void* page) {
  hyperclock_drop(static_cast<uint8_t*>(page), Bytes);
}

template <size_t Bytes>
Deleter DeleterOf() {
  return &Drop<Bytes>;
}
#endif

Deleter DeleterFor(size_t bytes) {
  switch (bytes) {
    case 1:
      return DeleterOf<1>();
    case 64:
      return DeleterOf<64>();
    case 8192:
      return DeleterOf<8192>();
    default:
      return nullptr;
  }
}

struct HyperClock {
  std::shared_ptr<rocks::Cache> owner;
  rocks::Cache* cache;
  Deleter deleter;
};

// The cache needs keys of 16 bytes: a constant in place of a file, and the number.
struct Key {
  uint64_t words[2];
  explicit Key(uint64_t number) : words{0x6f67697665000001, number} {}
  rocks::Slice slice() const {
    return {reinterpret_cast<const char*>(words), sizeof(words)};
  }
};

}  // namespace

extern "C" {

// Returns null if there is no deleter for pages of this length.
HyperClock* hyperclock_new(size_t entries, size_t page_bytes) noexcept {
  Deleter deleter = DeleterFor(page_bytes);
  if (deleter == nullptr) {
    return nullptr;
  }
  // The default number of shards: one, because the cache takes the capacity for bytes. It has no
  // lock that more shards would split. An entry has a charge of 1, and its metadata none, so there is
  // room for `entries` entries, as in the other caches.
  rocks::HyperClockCacheOptions options(entries, 1);
  options.metadata_charge_policy = rocks::kDontChargeCacheMetadata;
#if ROCKSDB_MAJOR >= 9
  options.hash_seed = 1;  // The same in every run; the default depends on the host.
#endif
  auto owner = options.MakeSharedCache();
  auto* cache = owner.get();
  return new HyperClock{std::move(owner), cache, deleter};
}

void hyperclock_free(HyperClock* self) noexcept { delete self; }

// Returns a pinned entry, and its value in `page`; or null.
rocks::Cache::Handle* hyperclock_lookup(HyperClock* self, uint64_t key, uint8_t** page) noexcept {
  rocks::Cache::Handle* handle = self->cache->Lookup(Key(key).slice());
  if (handle != nullptr) {
    *page = static_cast<uint8_t*>(self->cache->Value(handle));
  }
  return handle;
}

void hyperclock_release(HyperClock* self, rocks::Cache::Handle* handle) noexcept {
  self->cache->Release(handle);
}

// Takes ownership of the page, also if the insert fails.
void hyperclock_insert(HyperClock* self, uint64_t key, uint8_t* page) noexcept {
#if ROCKSDB_MAJOR >= 8
  self->cache->Insert(Key(key).slice(), page, self->deleter, 1).PermitUncheckedError();
#else
  self->cache->Insert(Key(key).slice(), page, 1, self->deleter).PermitUncheckedError();
#endif
}

}  // extern "C"
