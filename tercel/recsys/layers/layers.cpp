// Every layer by its name in a graph. An explicit list: see docs/design/overview.md on why nothing registers itself.
#include <type_traits>

#include "tercel/recsys/layers/activations.h"
#include "tercel/recsys/layers/arithmetic.h"
#include "tercel/recsys/layers/attention.h"
#include "tercel/recsys/layers/batch_norm.h"
#include "tercel/recsys/layers/compressed_interaction.h"
#include "tercel/recsys/layers/dice.h"
#include "tercel/recsys/layers/field_aware.h"
#include "tercel/recsys/layers/grouped_inner_product.h"
#include "tercel/recsys/layers/gru.h"
#include "tercel/recsys/layers/inner_product.h"
#include "tercel/recsys/layers/interaction.h"
#include "tercel/recsys/layers/layer_norm.h"
#include "tercel/recsys/layers/layers_impl.h"
#include "tercel/recsys/layers/loss.h"
#include "tercel/recsys/layers/matrix_multiply.h"
#include "tercel/recsys/layers/mlp.h"
#include "tercel/recsys/layers/multi_cross.h"
#include "tercel/recsys/layers/sample_rows.h"
#include "tercel/recsys/layers/selection.h"
#include "tercel/recsys/layers/shaping.h"
#include "tercel/util/options_impl.h"

namespace tercel::recsys {

namespace {

constexpr std::string_view kGraphKeys[] = {"type", "bottom", "top"};

template <class Type>
typename Type::Options read(const Json& json, std::string_view name) {
  typename Type::Options options;
  read_options(json, options, name, kGraphKeys);
  return options;
}

template <class Type>
std::unique_ptr<Layer> make(const Json& json, BuildContext& context, Json& resolved) {
  const auto options = read<Type>(json, str_cat({context.type, " ", context.name}));
  resolved.update(write_options(options));
  return std::make_unique<Type>(options, context);
}

template <class Type>
void check_options(const Json& json, std::string_view name) {
  read<Type>(json, name);
}

template <class Type>
void show_options(FunctionRef<void(OptionTable, const void*)> viewer) {
  const typename Type::Options defaults;
  viewer(option_table<typename Type::Options>(), &defaults);
}

template <class Type>
constexpr LayerEntry entry(std::string_view type, bool joins = false) {
  return {type, &make<Type>, &check_options<Type>, joins, std::is_base_of_v<LossLayer, Type>, &show_options<Type>};
}

constexpr bool kCombinesInputs = true;

constexpr LayerEntry kLayers[] = {
    entry<Add>("Add", kCombinesInputs),
    entry<BatchNorm>("BatchNorm"),
    entry<BinaryCrossEntropyLoss>("BinaryCrossEntropyLoss"),
    entry<Cast>("Cast"),
    entry<CompressedInteraction>("CompressedInteraction"),
    entry<Concat>("Concat", kCombinesInputs),
    entry<CrossEntropyLoss>("CrossEntropyLoss"),
    entry<Dropout>("Dropout"),
    entry<Elu>("ELU"),
    entry<ElementwiseMultiply>("ElementwiseMultiply"),
    entry<FieldAwareInteraction>("FieldAwareInteraction"),
    entry<FmOrder2>("FmOrder2"),
    entry<FusedReshapeConcat>("FusedReshapeConcat"),
    entry<FusedReshapeConcatGeneral>("FusedReshapeConcatGeneral"),
    entry<Gru>("GRU"),
    entry<Gather>("Gather"),
    entry<GroupedInnerProduct>("GroupedInnerProduct"),
    entry<InnerProduct>("InnerProduct"),
    entry<Interaction>("Interaction", kCombinesInputs),
    entry<LayerNorm>("LayerNorm"),
    entry<Mlp>("MLP"),
    entry<MatrixMultiply>("MatrixMultiply"),
    entry<MultiCross>("MultiCross"),
    entry<MultiCrossEntropyLoss>("MultiCrossEntropyLoss"),
    entry<MultiHeadAttention>("MultiHeadAttention"),
    entry<PReluDice>("PReLU_Dice"),
    entry<PaddingMask>("PaddingMask"),
    entry<Relu>("ReLU"),
    entry<ReduceMean>("ReduceMean"),
    entry<ReduceSum>("ReduceSum"),
    entry<Reshape>("Reshape"),
    entry<Scale>("Scale"),
    entry<Select>("Select"),
    entry<SequenceMask>("SequenceMask"),
    entry<Sigmoid>("Sigmoid"),
    entry<Slice>("Slice"),
    entry<Softmax>("Softmax"),
    entry<Sub>("Sub"),
    entry<WeightMultiply>("WeightMultiply"),
};

}  // namespace

Span<LayerEntry> layer_entries() { return kLayers; }

}  // namespace tercel::recsys
