#include "tercel/recsys/hugectr/session_states.h"

namespace tercel::recsys::hugectr {

ModelStates states_of(Session& session) {
  ModelStates states{session.dense_optimizer().states(), {}};
  const EmbeddingCollection& embeddings = session.model().embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    states.tables.push_back(embeddings.tables()[t]->store().states());
    states.tables.back().resize(states_in_file(embeddings.optimizer(t)));
  }
  return states;
}

}  // namespace tercel::recsys::hugectr
