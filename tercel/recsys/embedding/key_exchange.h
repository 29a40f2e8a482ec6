// The keys of a batch on their way to the ranks that have their rows: see Note [Exchange of rows].
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tercel/core/tensor.h"
#include "tercel/distributed/process_group.h"
#include "tercel/recsys/embedding/row_questions.h"

namespace tercel::recsys {

/** The keys that all ranks ask this one for, of one request: by rank, those of rows before those of sums. */
struct AskedKeys {
  Tensor keys;         ///< [n] int64
  Tensor row_offsets;  ///< [v + 1] int64: which keys each of the v vectors is the sum of; undefined: one key each
};

/** All ranks make the same calls, in the order in which they are here. DistributedError if a rank is lost. */
class TERCEL_API KeyExchange {
 public:
  /** Begins to tell each rank how much it is asked for. The group must outlive the exchange. */
  KeyExchange(distributed::ProcessGroup& group, std::vector<RowQuestions> questions);
  /** The same on a rank that has no batch now, in an exchange of so many requests: all ranks give it up then. */
  KeyExchange(distributed::ProcessGroup& group, size_t requests);

  /** Waits until it is known what this rank is asked for, and begins to send keys; false if a rank has no batch. */
  bool send();
  /** Waits for the keys; gives those of each request. send() comes first, and has given true. */
  std::vector<AskedKeys> receive();

  distributed::ProcessGroup& group() const { return group_; }
  const RowQuestions& questions(size_t request) const { return questions_[request]; }
  /** How many vectors of a request a rank sends here. */
  int64_t vectors_from(int64_t rank, size_t request) const;
  /** How many vectors of a request this rank sends to another. */
  int64_t vectors_for(int64_t rank, size_t request) const;

 private:
  /** What a rank asks another for, of one request. */
  struct Counts {
    int64_t keys = 0, summed_keys = 0, sums = 0;
    int64_t numbers() const { return keys + summed_keys + sums; }
  };
  void begin(const std::vector<Counts>& counts);
  Counts given(int64_t rank, size_t request) const;

  distributed::ProcessGroup& group_;
  size_t requests_;
  std::vector<RowQuestions> questions_;
  Tensor own_counts_, counts_;  // [ranks, requests, 3] int64
  Tensor own_keys_, keys_;
  std::optional<distributed::Work> counting_, sending_;
};

}  // namespace tercel::recsys
