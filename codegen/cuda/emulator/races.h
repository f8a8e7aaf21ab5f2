// Races: what is kept of accesses to a place in memory, and when two of them are not ordered.
//
// Threads of a block are ordered by its barriers, blocks by fences around atomic operations. So of the accesses of one kind
// since the last that came after all before, it is enough to know the latest one and how far they
// are spread: whoever is ordered after that one, and not spread further, is ordered after all.
#pragma once
#include "state.h"

namespace emulator {
namespace {

// How far accesses of one kind to one place are spread, since the last one that came after all.
enum Spread : unsigned short { THREAD, BLOCK, BLOCKS };

struct Trace {
  unsigned time;  // of the last; before the launch (or the block, in shared memory): none
  unsigned place;
  unsigned short thread;
  Spread spread;
};

enum CellState : unsigned { WHOLE, SPLIT, COPIED };  // COPIED: a cp.async is under way

// What happened to four bytes, or to one byte of four that were not always accessed together.
struct Cell {
  Trace write, read, atomic;
  CellState state;
};

// Whether an access happened in this launch (in shared memory: this block), not ordered before
// what the current thread does now.
bool unordered(const Trace& trace, bool in_shared) {
  if (trace.time < (in_shared ? clock_.block : 2)) return false;
  if (trace.spread == BLOCKS) return true;
  if (trace.time < clock_.block) return !ordered_before(trace.time);
  if (trace.time < clock_.barrier) return false;
  return trace.spread != THREAD || trace.thread != current->number;
}

Trace trace_of(unsigned place, Spread spread) {
  return {clock_.now, place, static_cast<unsigned short>(current->number), spread};
}

// One more access of a kind that does not conflict with itself.
void join(Trace& trace, unsigned place, bool in_shared) {
  if (!unordered(trace, in_shared))
    trace = trace_of(place, THREAD);
  else if (trace.spread == BLOCKS || trace.time < clock_.block)
    trace.spread = BLOCKS;  // what is kept of it is another block's, so nothing here is ordered
  else
    trace = trace_of(place, BLOCK);
}

struct Conflict {
  Problem problem;
  Trace other;
};

// Records an access to a cell; whether it conflicts with an earlier one.
bool record(Cell& cell, Access kind, unsigned place, bool in_shared, Conflict& conflict) {
  if (cell.state == COPIED && cell.write.time < clock_.block)
    cell.state = WHOLE;  // copied to by a block that has ended
  bool found = true;
  if (cell.state == COPIED)
    conflict = {Problem::unfinished_copy, cell.write};
  else if (unordered(cell.write, in_shared))
    conflict = {kind == Access::read    ? Problem::write_read
                : kind == Access::write ? Problem::write_write
                                        : Problem::atomic_plain,
                cell.write};
  else if (kind != Access::atomic && unordered(cell.atomic, in_shared))
    conflict = {Problem::atomic_plain, cell.atomic};
  else if (kind != Access::read && unordered(cell.read, in_shared))
    conflict = {Problem::read_write, cell.read};
  else
    found = false;
  if (kind == Access::read) {
    join(cell.read, place, in_shared);
  } else if (kind == Access::atomic) {
    join(cell.atomic, place, in_shared);
  } else {  // what is ordered after this is ordered after all before
    cell.write = trace_of(place, THREAD);
    cell.read.time = cell.atomic.time = 0;
  }
  return found;
}

}  // namespace
}  // namespace emulator
