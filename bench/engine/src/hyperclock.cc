// RocksDB's HyperClockCache for C, and so for Rust: as little as a look-up, a pin and an insert
// take. Each function is one call of the public interface (two where a value is looked up), so
// that what is measured is the cache. The interface changed with 8.0; both are served.

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

// Gives a value back to Rust, which made it.
extern "C" void hyperclock_drop(uint8_t* page, size_t bytes) noexcept;

namespace {

// The cache does not say how long a value is, so there is a deleter for each length.
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

// 16 bytes, as it wants them: what a file would be, and the number.
struct Key {
  uint64_t words[2];
  explicit Key(uint64_t number) : words{0x6f67697665000001, number} {}
  rocks::Slice slice() const {
    return {reinterpret_cast<const char*>(words), sizeof(words)};
  }
};

}  // namespace

extern "C" {

// Null if there is no deleter for pages of so many bytes.
HyperClock* hyperclock_new(size_t entries, size_t page_bytes) noexcept {
  Deleter deleter = DeleterFor(page_bytes);
  if (deleter == nullptr) {
    return nullptr;
  }
  // The parts (shards) are as many as it takes itself for such a capacity: one, for it counts on
  // bytes. It has no lock that more of them would split.
  // Every entry is charged 1 and its slot nothing: room for `entries` of them, as in the others.
  rocks::HyperClockCacheOptions options(entries, 1);
  options.metadata_charge_policy = rocks::kDontChargeCacheMetadata;
#if ROCKSDB_MAJOR >= 9
  options.hash_seed = 1;  // Alike in every run; else it would be the host's.
#endif
  auto owner = options.MakeSharedCache();
  auto* cache = owner.get();
  return new HyperClock{std::move(owner), cache, deleter};
}

void hyperclock_free(HyperClock* self) noexcept { delete self; }

// A pinned entry and, where `page` points, its value; or null.
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

// The page is the cache's from here on, whatever comes of it.
void hyperclock_insert(HyperClock* self, uint64_t key, uint8_t* page) noexcept {
#if ROCKSDB_MAJOR >= 8
  self->cache->Insert(Key(key).slice(), page, self->deleter, 1).PermitUncheckedError();
#else
  self->cache->Insert(Key(key).slice(), page, 1, self->deleter).PermitUncheckedError();
#endif
}

}  // extern "C"
