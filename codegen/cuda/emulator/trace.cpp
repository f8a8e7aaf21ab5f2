// What warps ask of memory: the accesses that a warp's threads make between two barriers at one
// place of the code, in the same iterations of the loops around it, are one request.
#include <algorithm>
#include <map>
#include <tuple>

#include "trace.h"

namespace emulator {

namespace {

// The place, the kind of request, the iterations, and how often a thread was there in these.
using Visit = std::tuple<std::uintptr_t, unsigned, std::uint64_t, unsigned>;

struct Asked {
  std::int64_t offset;
  unsigned lane, size;
};

// Per warp: what its threads asked for since the last barrier.
std::vector<std::map<Visit, std::vector<Asked>>> asked;
// Per thread: how often it was somewhere.
std::vector<std::map<Visit, unsigned>> visits;

// The most words of a bank that some threads need at once.
unsigned long busiest(const std::vector<Asked>& some, unsigned from, unsigned to) {
  std::vector<std::int64_t> words;
  for (const Asked& one : some)
    if (one.lane >= from && one.lane < to)
      for (std::int64_t word = one.offset / 4; word * 4 < one.offset + one.size; ++word)
        words.push_back(word);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  unsigned long bank[32] = {}, most = 0;
  for (std::int64_t word : words) most = std::max(most, ++bank[word % 32]);
  return most;
}

// Whether each of some threads asks for the same as the one so many lanes apart, if that asks.
bool paired(const std::vector<Asked>& some, unsigned from, unsigned to, unsigned apart) {
  for (const Asked& one : some)
    for (const Asked& other : some)
      if (one.lane >= from && one.lane < to && other.lane == (one.lane ^ apart) &&
          one.offset != other.offset)
        return false;
  return true;
}

unsigned long wavefronts(const std::vector<Asked>& some, unsigned from, unsigned to,
                         unsigned lanes_at_once) {
  unsigned long sum = 0;
  bool pairs = paired(some, from, to, 1) || paired(some, from, to, 2);
  unsigned step = pairs ? std::min(2 * lanes_at_once, to - from) : lanes_at_once;
  for (unsigned lane = from; lane < to; lane += step) sum += busiest(some, lane, lane + step);
  return sum;
}

unsigned long wavefronts(const std::vector<Asked>& some) {
  switch (some[0].size) {
    case 8: return wavefronts(some, 0, 32, 16);
    case 16: return wavefronts(some, 0, 16, 8) + wavefronts(some, 16, 32, 8);
    default: return busiest(some, 0, 32);
  }
}

unsigned long sectors(const std::vector<Asked>& some) {
  std::vector<std::int64_t> found;
  for (const Asked& one : some)
    for (std::int64_t byte = 0; byte < one.size; ++byte)
      found.push_back((one.offset + byte) >> 5);
  std::sort(found.begin(), found.end());
  return std::unique(found.begin(), found.end()) - found.begin();
}

unsigned long matrices(const std::vector<Asked>& some) {
  unsigned long sum = 0;
  for (unsigned lane = 0; lane < 32; lane += 8) sum += busiest(some, lane, lane + 8);
  return sum;
}

}  // namespace

void trace(Traced traced, std::int64_t offset, unsigned size, void* place) {
  Visit visit = {reinterpret_cast<std::uintptr_t>(place), unsigned(traced),
                 current->turns.empty() ? 0 : current->turns.back(), 0};
  std::get<3>(visit) = visits[current->number][visit]++;
  asked[current->number / 32][visit].push_back({offset, current->number % 32, size});
}

void enter_iteration(unsigned line, long long number) {
  std::uint64_t around = current->turns.empty() ? 0 : current->turns.back();
  std::uint64_t own = (around ^ line) * 0x9e3779b97f4a7c15 ^ std::uint64_t(number);
  current->turns.push_back((own ^ own >> 29) * 0xbf58476d1ce4e5b9);
}

void leave_iteration() { current->turns.pop_back(); }

void begin_trace(unsigned threads) {
  visits.assign(threads, {});
  asked.assign((threads + 31) / 32, {});
}

void end_requests() {
  for (auto& warp : asked) {
    for (auto& [visit, some] : warp) {
      Traffic& sum = launch->traffic[std::get<1>(visit)];
      ++sum.requests;
      for (const Asked& one : some) sum.bytes += one.size;
      switch (Traced(std::get<1>(visit))) {
        case Traced::global_read:
        case Traced::global_copy:
        case Traced::global_write: sum.units += sectors(some); break;
        case Traced::matrix_read: sum.units += matrices(some); break;
        default: sum.units += wavefronts(some);
      }
    }
    warp.clear();
  }
  for (auto& thread : visits) thread.clear();
}

}  // namespace emulator
