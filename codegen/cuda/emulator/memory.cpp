// Watches accesses to global and shared memory: each has to lie in its tensor, and has to be
// ordered by barriers with those of other threads to the same bytes.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "races.h"
#include "trace.h"

namespace emulator {

namespace {

struct Region {
  unsigned char* begin;
  std::size_t size;
  const unsigned char* inside;
  Cell *words, *bytes;
  std::size_t mapped;
  bool shared;
};

Region global, shared;
unsigned char* image;
const unsigned char *constants_begin, *constants_end;

Cell* map_cells(std::size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room == MAP_FAILED ? nullptr : static_cast<Cell*>(room);
}

void watch(Region& region, unsigned char* begin, std::size_t size, const unsigned char* inside) {
  region = {begin, size, inside, nullptr, nullptr, 0, inside == nullptr};
  if (!launch->checked) return;
  std::size_t words = size / 4 + 1;
  region.mapped = 5 * words * sizeof(Cell);
  region.words = map_cells(region.mapped);
  if (!region.words) launch->checked = 0;  // no room: the caller sees that it was not checked
  region.bytes = region.words + words;
}

// Calls `visit` for the cells of these bytes.
template <class Visit>
void each_cell(Region& region, std::size_t offset, std::size_t size, Visit visit) {
  for (std::size_t at = offset, end = offset + size; at < end;) {
    std::size_t word = at / 4, next = 4 * word + 4;
    Cell& whole = region.words[word];
    if (whole.state != SPLIT) {
      if (at == 4 * word && next <= end) {
        visit(whole);
        at = next;
        continue;
      }
      for (std::size_t byte = 4 * word; byte < next; ++byte) region.bytes[byte] = whole;
      whole.state = SPLIT;
    }
    for (; at < next && at < end; ++at) visit(region.bytes[at]);
  }
}

void report_at(Finding found, const Region& region, const unsigned char* address, unsigned size) {
  found.shared = region.shared;
  found.offset = address - region.begin;
  found.size = size;
  report(found);
}

// A vector that is not aligned ends the process on this machine too: the run ends before.
void report_misaligned(const Region& region, const unsigned char* address, unsigned alignment,
                       void* place) {
  report_at(finding(Problem::misaligned, place), region, address, alignment);
  if (alignment >= 16) stop();
}

bool within(const Region& region, const unsigned char* address) {
  return address >= region.begin && address < region.begin + region.size;
}

// Whether the bytes may be accessed like this; reports it if not.
bool allowed(const Region& region, const unsigned char* address, unsigned size, Access kind,
             void* place) {
  std::size_t offset = address - region.begin;
  unsigned char all = READABLE | WRITABLE;
  if (region.shared || offset + size > region.size)
    all = offset + size <= launch->shared_size && region.shared ? all : 0;
  else
    for (unsigned i = 0; i < size; ++i) all &= region.inside[offset + i];
  unsigned char needed = kind == Access::read ? READABLE : WRITABLE;
  if (all & needed) return true;
  Problem problem = all & READABLE ? Problem::read_only : Problem::out_of_bounds;
  report_at(finding(problem, place), region, address, size);
  return false;
}

Region* region_of(const unsigned char* address) {
  if (within(global, address)) return &global;
  return within(shared, address) ? &shared : nullptr;
}

void observe(Region& region, const unsigned char* address, unsigned size, Access kind,
             void* place) {
  unsigned at = offset_of(place);
  Conflict conflict;
  bool found = false;
  each_cell(region, address - region.begin, size, [&](Cell& cell) {
    Conflict next;
    if (record(cell, kind, at, region.shared, next) && !found) {
      conflict = next;
      found = true;
    }
  });
  if (!found) return;
  Finding race = finding(conflict.problem, place);
  race.other_thread = conflict.other.thread;
  race.other_block = block_at(conflict.other.time);
  race.other_place = conflict.other.place;
  report_at(race, region, address, size);
}

// Bytes from the first element of the tensor in which an address of global memory lies, so that
// sectors are those of a tensor that begins at one; tensors lie far apart.
std::int64_t within_tensor(std::int64_t offset) {
  const Origin* end = launch->origins + launch->number_of_origins;
  const Origin* next = std::upper_bound(
      launch->origins, end, offset, [](std::int64_t at, const Origin& o) { return at < o.begin; });
  if (next == launch->origins) return offset;
  std::int64_t apart = (next - launch->origins) << 44;
  return offset - next[-1].first + apart;
}

// Where this library lies, and its constants: all that kernels may touch beside tensors.
int find_image(dl_phdr_info* info, std::size_t, void*) {
  const auto* here = reinterpret_cast<const unsigned char*>(&launch);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    auto* begin = reinterpret_cast<unsigned char*>(info->dlpi_addr + part.p_vaddr);
    if (part.p_type != PT_LOAD || here < begin || here >= begin + part.p_memsz) continue;
    image = reinterpret_cast<unsigned char*>(info->dlpi_addr);
    constants_begin = image;
    constants_end = begin;  // what is writable comes last
    return 1;
  }
  return 0;
}

bool harmless(const unsigned char* address, Access kind) {
  if (on_a_stack(address)) return true;
  const auto* variables = reinterpret_cast<const unsigned char*>(&indices);
  bool variable = address >= variables && address < variables + sizeof indices;
  return kind == Access::read &&
         (variable || (address >= constants_begin && address < constants_end));
}

// Tensor cores know of it after a fence.
void wrote(const Region& region) {
  if (region.shared && !current->unfenced) current->unfenced = clock_.now;
}

// The copy that was asked for, at last.
void finish(const Copy& copy) {
  Region* to = launch->checked ? region_of(copy.to) : nullptr;
  if (to) {
    each_cell(*to, copy.to - to->begin, copy.size, [](Cell& cell) { cell.state = WHOLE; });
    if (copy.valid) observe(*region_of(copy.from), copy.from, copy.size, Access::read, copy.place);
    observe(*to, copy.to, copy.size, Access::write, copy.place);
    wrote(*to);
  }
  if (copy.valid)
    std::memcpy(copy.to, copy.from, copy.size);
  else
    std::memset(copy.to, 0, copy.size);
}

}  // namespace

unsigned offset_of(void* place) {
  return place ? unsigned(static_cast<unsigned char*>(place) - image) : 0;
}

Finding finding(Problem problem, void* place) {
  Finding found = {};
  found.problem = problem;
  found.thread = found.other_thread = current->number;
  found.block = found.other_block = indices.block.x;
  found.place = offset_of(place);
  return found;
}

void report(Finding found) {
  for (unsigned i = 0; i < launch->number_of_findings; ++i) {
    const Finding& known = launch->findings[i];
    if (known.problem == found.problem && known.place == found.place &&
        known.other_place == found.other_place && known.line == found.line)
      return;
  }
  if (launch->number_of_findings < launch->most_findings)
    launch->findings[launch->number_of_findings++] = found;
}

void start_observing() {
  dl_iterate_phdr(find_image, nullptr);
  watch(global, launch->arena, launch->arena_size, launch->inside);
  watch(shared, launch->shared, launch->shared_room, nullptr);
}

void stop_observing() {
  for (Region* region : {&global, &shared})
    if (region->words) munmap(region->words, region->mapped);
}

void misaligned(const void* pointer, unsigned alignment, void* place) {
  const auto* address = static_cast<const unsigned char*>(pointer);
  Region* region = launch->checked && current ? region_of(address) : nullptr;
  if (region) report_misaligned(*region, address, alignment, place);
}

// As `access`, which says what tensor cores do not know yet as well.
bool observed(const void* pointer, unsigned size, unsigned alignment, Access kind, void* place) {
  if (!launch->checked || !current) return true;
  const auto* address = static_cast<const unsigned char*>(pointer);
  Region* region = region_of(address);
  if (!region) {
    if (harmless(address, kind)) return true;
    Finding found = finding(Problem::elsewhere, place);
    found.offset = address - launch->arena;
    found.size = size;
    report(found);
    stop();  // the access might end the process
  }
  if (reinterpret_cast<std::uintptr_t>(address) % alignment)
    report_misaligned(*region, address, alignment, place);
  if (!allowed(*region, address, size, kind, place)) return false;
  observe(*region, address, size, kind, place);
  return true;
}

bool access(const void* pointer, unsigned size, unsigned alignment, Access kind, void* place) {
  if (!launch->checked || !current) return true;
  if (kind != Access::read)
    if (Region* region = region_of(static_cast<const unsigned char*>(pointer))) wrote(*region);
  return observed(pointer, size, alignment, kind, place);
}

void trace_access(const void* pointer, unsigned size, Access kind, void* place) {
  if (!launch->traffic || !current) return;
  const auto* address = static_cast<const unsigned char*>(pointer);
  bool read = kind == Access::read;
  if (within(shared, address))
    trace(read ? Traced::shared_read : Traced::shared_write, address - shared.begin, size, place);
  else if (within(global, address))
    trace(read ? Traced::global_read : Traced::global_write,
          within_tensor(address - global.begin), size, place);
}

void trace_matrix_row(const void* row, void* place) {
  if (launch->traffic)
    trace(Traced::matrix_read, static_cast<const unsigned char*>(row) - shared.begin, 16, place);
}

void require_shared(const void* pointer, unsigned alignment, void* place) {
  const auto* address = static_cast<const unsigned char*>(pointer);
  if (!within(shared, address)) {
    report(finding(Problem::not_shared, place));
    stop();
  }
  if (launch->checked && reinterpret_cast<std::uintptr_t>(address) % alignment)
    report_misaligned(shared, address, alignment, place);
}

void copy_async(void* to, const void* from, unsigned size, bool valid, void* place) {
  require_shared(to, size, place);
  if (launch->traffic) {
    trace(Traced::shared_copy, static_cast<unsigned char*>(to) - shared.begin, size, place);
    const auto* source = static_cast<const unsigned char*>(from);
    if (valid && within(global, source))
      trace(Traced::global_copy, within_tensor(source - global.begin), size, place);
  }
  if (!observed(to, size, size, Access::write, place)) return;
  if (valid && !access(from, size, size, Access::read, place)) return;
  if (launch->checked)
    each_cell(shared, static_cast<unsigned char*>(to) - shared.begin, size,
              [](Cell& cell) { cell.state = COPIED; });
  std::memset(to, 0xff, size);
  current->copies.push_back({static_cast<unsigned char*>(to),
                             static_cast<const unsigned char*>(from), size, current->committed,
                             valid, place});
}

void fence_panels() { current->unfenced = 0; }

void begin_products() { current->sums_fenced = true; }

// Tensor cores may read at any time from the beginning until somebody has waited.
void ask(Product product) {
  product.sums = nullptr;
  product.add(product);
}

void issue_product(const Product& product) {
  if (launch->checked) {
    ask(product);
    if (!current->sums_fenced) report(finding(Problem::unfenced_sums, product.place));
    if (const Fiber* writer = unfenced_writer()) {
      Finding found = finding(Problem::unfenced_panel, product.place);
      found.other_thread = writer->number;
      report(found);
    }
  }
  current->products.push_back({product, current->products_committed});
}

void commit_products() {
  ++current->products_committed;
  current->sums_fenced = false;
}

void wait_products(unsigned pending) {
  std::vector<Issued>& products = current->products;
  std::size_t done = 0;
  for (; done < products.size(); ++done) {
    if (products[done].group + pending >= current->products_committed) break;
    if (launch->checked) ask(products[done].product);
    products[done].product.add(products[done].product);
  }
  products.erase(products.begin(), products.begin() + done);
}

unsigned char* shared_memory() { return launch->shared; }

void commit_copies() { ++current->committed; }

void wait_copies(unsigned pending) {
  std::vector<Copy>& copies = current->copies;
  std::size_t done = 0;
  while (done < copies.size() && copies[done].group + pending < current->committed)
    finish(copies[done++]);
  copies.erase(copies.begin(), copies.begin() + done);
}

}  // namespace emulator
