"""Graphs written in Python."""

import inspect

import numpy as np
import pytest

import tercel as tc
import tercel.data as td
import tercel.recsys as tr


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return td.generate(tmp_path_factory.mktemp("graph") / "data", rows=500, preset="small", seed=1).dataset


def wide_and_deep():
    graph = tr.Graph("click", dense="x", sparse={"user": 2, "item": 3}, name="mine")
    flat = [graph.Reshape(graph.SparseEmbedding(name, embedding_vec_size=4, top=f"{name}_vectors"))
            for name in ("user", "item")]
    logit = graph.MLP(graph.Concat(*flat, "x"), num_outputs=[8, 1], activations=["Relu", "Non"], top="logit")
    graph.BinaryCrossEntropyLoss(logit, "click", top="loss")
    return graph


def test_a_graph_is_trained(dataset):
    graph = wide_and_deep()
    session = tr.Session(graph, dataset, solver={"batchsize": 50})
    assert session.inputs == {"user": 2, "item": 3} and session.config["model_name"] == "mine"
    assert set(session.tables()) == {"user_vectors", "item_vectors"}
    while session.step():
        pass
    assert session.steps == 9
    again = tr.Session({"layers": graph.layers}, dataset, solver={"batchsize": 50})
    while again.step():
        pass
    assert again.loss == session.loss


def test_layers_are_those_of_the_configuration():
    graph = wide_and_deep()
    assert graph.layers[0] == {"type": "Data", "label": {"top": "click"}, "dense": {"top": "x"},
                               "sparse": [{"top": "user", "slot_num": 2}, {"top": "item", "slot_num": 3}]}
    assert graph.layers[1] == {"type": "SparseEmbedding", "bottom": "user", "top": "user_vectors",
                               "sparse_embedding_hparam": {"embedding_vec_size": 4}}
    assert graph.layers[2]["top"] == "Reshape1" and graph.layers[-1]["bottom"] == ["logit", "click"]
    two = tr.Graph({"click": 1, "buy": 1}, sparse="keys")
    assert two.layers[0]["label"] == {"top": ["click", "buy"], "label_dim": [1, 1]}
    assert two.Slice("x", ranges=[[0, 1], [1, 2]], top=["a", "b"]) == ("a", "b")
    assert two.InnerProduct("a", fc_param={"num_output": 3}) == "InnerProduct1"
    assert two.SparseEmbedding("keys", optimizer={"type": "SGD"}) == "SparseEmbedding1"
    assert two.layers[-1]["optimizer"] == {"type": "SGD"}


def test_every_layer_is_a_method():
    assert {"MLP", "Interaction", "SparseEmbedding", "BinaryCrossEntropyLoss"} <= set(tr.layer_types())
    for name in tr.layer_types():
        method = getattr(tr.Graph, name)
        assert method.__name__ == name and name in method.__doc__
    parameters = inspect.signature(tr.Graph.InnerProduct).parameters
    assert parameters["num_output"].default is inspect.Parameter.empty
    assert parameters["weight_init"].default == "Default"
    assert "width of the output" in tr.Graph.InnerProduct.__doc__


@pytest.mark.parametrize("call, error, text", [
    (lambda g: g.InnerProduct("x"), TypeError, "InnerProduct: option 'num_output' is missing"),
    (lambda g: g.MLP("x", num_outputz=[1]), TypeError, "MLP: unknown option 'num_outputz'"),
    (lambda g: g.MLP(3, num_outputs=[1]), TypeError, "MLP: bottom: expected a name"),
    (lambda g: g.add("MPL", ["x"]), tc.ConfigError, "unknown type of layer 'MPL'"),
])
def test_wrong_layers_are_named(call, error, text):
    with pytest.raises(error, match=text):
        call(tr.Graph())


def test_the_model_checks_the_graph(dataset):
    graph = tr.Graph()
    graph.BinaryCrossEntropyLoss(graph.InnerProduct("dens", num_output=1), "label")
    with pytest.raises(tc.ConfigError, match="did you mean 'dense'"):
        tr.Session(graph, dataset)


def test_classes_are_predicted():
    item = np.random.default_rng(0).integers(0, 30, 2000)
    rows = td.ArrayDataset({"item": item}, labels=(item % 3).astype(np.float32))
    graph = tr.Graph(sparse="items")
    graph.CrossEntropyLoss(graph.InnerProduct(graph.Reshape(graph.SparseEmbedding("items", embedding_vec_size=8)),
                                              num_output=3, top="logits"), "label")
    session = tr.Session(graph, rows, solver={"lr": 0.05, "batchsize": 100}, optimizer={"type": "Adam"})
    for batch in session.batches(rows, epochs=4):
        session.step(batch)
    found = np.asarray(session.predict(rows))
    assert found.shape == (2000, 3) and np.allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found.argmax(axis=1) == item % 3).mean() > 0.99
    assert session.evaluate(rows)["auc"] > 0.99
    with pytest.raises(tc.DataError, match=r"\[CrossEntropyLoss .*numbers of classes, 0 to 2, found 3 in row 1"):
        session.step({"item": [0, 1]}, [2, 3])


def test_attention_over_a_history():
    draw = np.random.default_rng(1)
    keys = {f"seen{i}": draw.integers(0, 20, 500) for i in range(3)}
    rows = td.ArrayDataset({**keys, "target": draw.integers(0, 20, 500)}, labels=draw.integers(0, 2, 500))
    graph = tr.Graph(sparse="items")
    history, target = graph.FusedReshapeConcat(graph.SparseEmbedding("items", embedding_vec_size=4),
                                               top=["history", "target"])
    copies = graph.Scale(target, axis=1, factor=3)
    pairs = graph.Concat(copies, history, graph.Sub(copies, history))
    weights = graph.Softmax(graph.Reshape(graph.InnerProduct(pairs, num_output=1), leading_dim=3, time_step=1))
    interest = graph.MatrixMultiply(weights, graph.Reshape(history, leading_dim=4, time_step=3))
    hidden = graph.PReLU_Dice(graph.InnerProduct(graph.Concat(graph.Reshape(interest), target), num_output=8), alpha=0.2)
    graph.BinaryCrossEntropyLoss(graph.InnerProduct(hidden, num_output=1), "label")
    session = tr.Session(graph, rows, solver={"batchsize": 50})
    for batch in session.batches(rows):
        session.step(batch)
    assert session.steps == 10 and tuple(session.predict(rows).shape) == (500,)
    assert set(session.buffers()) == {f"{hidden}.running_mean", f"{hidden}.running_var"}
