"""A small network that continues a signal, and its file: an ONNX model that runs wherever onnxruntime does.

```text
window x (W values, oldest first)      d = differences of neighbours, s = sqrt(mean d^2) + tiny, z = d / s
out    x_last + s (A z + C tanh(B z + b))        at each horizon
```
Scaled by its own motion, a signal is continued in the same way whatever its unit and size. One network serves all values of
a sample, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpsbed import inputs, results
from tcpsbed.errors import DataError
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TINY = 1e-12
"""Least divisor: a signal at rest would otherwise be divided by zero."""
OPSET = 17
"""Version of the set of ONNX operators that the file needs; onnxruntime has it since 1.13."""
IR = 8
"""Version of the file's own format, as old as `OPSET` allows."""


@dataclass
class Network:
    """The network.

    Attributes
    ----------
    period_ms : float
        Time between two samples of the window.
    horizons_ms : tuple of float
        Moments after the last sample that it guesses, rising.
    linear : numpy.ndarray
        A, shape (W - 1, H).
    first, bias, second : numpy.ndarray
        B, b and C, shapes (W - 1, U), (U,), (U, H).
    """

    period_ms: float
    horizons_ms: tuple[float, ...]
    linear: NDArray[np.float64]
    first: NDArray[np.float64]
    bias: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def window(self) -> int:
        """Number of samples in its input."""
        return len(self.linear) + 1

    def guess(self, windows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The signal at each horizon.

        Parameters
        ----------
        windows : numpy.ndarray
            Shape (n, W), oldest sample first.

        Returns
        -------
        numpy.ndarray
            Shape (n, H), in the unit of the windows.
        """
        import numpy as np

        z, scale = scaled(windows)
        out = z @ self.linear + np.tanh(z @ self.first + self.bias) @ self.second
        guessed: NDArray[np.float64] = windows[:, -1:] + scale * out
        return guessed

    def save(self, file: Path) -> Path:
        """Writes the model.

        Raises
        ------
        DataError
            If the package `onnx` is not there, or the file cannot be written.
        """
        onnx = _package("onnx")
        model = onnx.helper.make_model(
            self._graph(onnx),
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=IR,
            producer_name="tcpsbed",
        )
        said = {
            "period_ms": repr(float(self.period_ms)),
            "horizons_ms": ",".join(repr(float(ms)) for ms in self.horizons_ms),
            "window": str(self.window),
        }
        onnx.helper.set_model_props(model, said)
        onnx.checker.check_model(model)
        try:
            with results.whole(file) as part:
                part.write_bytes(model.SerializeToString())
        except OSError as error:
            raise DataError(str(error), file=file, allowed="a file that can be written") from None
        return file

    def _graph(self, onnx: Any) -> Any:
        """The equation of the module's head."""
        import numpy as np

        helper, constant = onnx.helper, onnx.numpy_helper.from_array
        w = self.window
        last = np.zeros((w, 1))
        last[-1] = 1.0
        constants = {
            "differences": np.eye(w, w - 1, -1) - np.eye(w, w - 1),
            "last": last,
            "tiny": np.array(TINY),
            "linear": self.linear,
            "first": self.first,
            "bias": self.bias,
            "second": self.second,
        }
        nodes = [
            ("MatMul", ["window", "differences"], "d"),
            ("Mul", ["d", "d"], "squares"),
            ("ReduceMean", ["squares"], "mean"),
            ("Sqrt", ["mean"], "root"),
            ("Add", ["root", "tiny"], "scale"),
            ("Div", ["d", "scale"], "z"),
            ("MatMul", ["z", "linear"], "straight"),
            ("MatMul", ["z", "first"], "in"),
            ("Add", ["in", "bias"], "sum"),
            ("Tanh", ["sum"], "hidden"),
            ("MatMul", ["hidden", "second"], "bent"),
            ("Add", ["straight", "bent"], "shape"),
            ("Mul", ["shape", "scale"], "way"),
            ("MatMul", ["window", "last"], "here"),
            ("Add", ["here", "way"], "guess"),
        ]
        attributes = {"ReduceMean": {"axes": [1], "keepdims": 1}}
        double = onnx.TensorProto.DOUBLE
        return helper.make_graph(
            [helper.make_node(op, into, [out], **attributes.get(op, {})) for op, into, out in nodes],
            "continue",
            [helper.make_tensor_value_info("window", double, ["n", w])],
            [helper.make_tensor_value_info("guess", double, ["n", len(self.horizons_ms)])],
            [constant(array, name) for name, array in constants.items()],
        )


def scaled(windows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences of neighbours over their root mean square, shape (n, W - 1), and that, shape (n, 1)."""
    import numpy as np

    d = np.diff(windows, axis=1)
    scale = np.sqrt(np.mean(d * d, axis=1, keepdims=True)) + TINY
    return d / scale, scale


def _package(name: str) -> Any:
    import importlib

    try:
        package = importlib.import_module(name)
        if name == "onnx":
            for part in ("helper", "numpy_helper", "checker"):
                importlib.import_module(f"onnx.{part}")
    except ImportError:
        raise DataError(
            f"found no {name}, which learned models need", allowed='pip install "tcpsbed[learned]"'
        ) from None
    return package


class Model:
    """A model in a file, run by onnxruntime."""

    def __init__(self, file: Path | str, provider: str = "CPUExecutionProvider") -> None:
        runtime = _package("onnxruntime")
        inputs.regular(Path(file), "a model of `tcpsbed predict train`")
        known = runtime.get_available_providers()
        if provider not in known:
            raise DataError(f'found "{provider}"', key="provider", allowed=close_match(str(provider), known))
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = runtime.InferenceSession(str(file), options, providers=[provider])
            said = self._session.get_modelmeta().custom_metadata_map
            self.period_ms = float(said["period_ms"])
            self.horizons_ms = tuple(float(ms) for ms in said["horizons_ms"].split(","))
            self.window = int(said["window"])
        except Exception as error:  # the runtime has errors of its own; another model lacks the words
            what = "names no period, horizons and window" if isinstance(error, KeyError) else str(error)
            raise DataError(what, file=Path(file), allowed="a model of `tcpsbed predict train`") from None

    def guess(self, windows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The signal at each horizon, as `Network.guess`."""
        found: NDArray[np.float64] = self._session.run(None, {"window": windows})[0]
        return found
