"""A server that answers as the public text of CoppeliaSim's remote API says.

ZeroMQ, request and reply; a map in CBOR each. Request: `func`, `args`, `argsL`, `uuid`, and in the first one also `ver`,
`lang`, `timeout`. Reply: `ret`, a list, or `err`. A reply with `func` is a call-back: `_*wait*_` is answered by
`_*executed*_`, and `_*repeat*_` by the same request again.
"""

from __future__ import annotations

import threading

import pytest

NAMES = ("getObject", "getJointPosition", "setJointTargetPosition", "readForceSensor", "setStepping", "step")
NAMES += ("startSimulation", "stopSimulation", "getSimulationTimeStep")


class Simulator(threading.Thread):
    """Joints that go a third of their way in each step of 5 ms, and a force sensor that feels the first joint."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        zmq = pytest.importorskip("zmq")
        self.cbor = pytest.importorskip("cbor2")
        self.socket = zmq.Context().socket(zmq.REP)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.joints = {"/arm/a": 0.0, "/arm/b": 0.0}
        self.targets = dict(self.joints)
        self.requests: list[dict] = []
        self.over, self.deaf = threading.Event(), threading.Event()
        self.steps, self.stepping, self.running, self.waits = 0, False, False, 0
        self.broken = b""
        self.start()

    def run(self) -> None:
        """Answers until the test is over."""
        while not self.over.is_set():
            if self.deaf.is_set() or not self.socket.poll(50):
                continue
            request = self.cbor.loads(self.socket.recv())
            self.requests.append(request)
            self.socket.send(self.broken or self.cbor.dumps(self.reply(request)))
        self.socket.close(linger=0)

    def reply(self, request: dict) -> dict:
        """What the simulator says; a step first asks the client to wait, then to repeat."""
        if request["func"] == "_*executed*_":
            return {"func": "_*repeat*_", "args": []}
        if request["func"] == "sim.step":
            self.waits += 1
            if self.waits % 2:
                return {"func": "_*repeat*_", "args": []}
        try:
            return {"ret": self.call(request["func"], request["args"])}
        except KeyError as error:
            return {"err": f"object does not exist: {error}"}

    def call(self, func: str, args: list) -> list:
        """A function of the simulator."""
        names = list(self.joints)
        match func.removeprefix("sim."):
            case "zmqRemoteApi.require":
                return []
            case "zmqRemoteApi.info":
                return [{name: {"func": {}} for name in NAMES}]
            case "getObject":
                return [{"/arm/a": 0, "/arm/b": 1, "/arm/force": 7}[args[0]]]
            case "getJointPosition":
                return [self.joints[names[args[0]]]]
            case "setJointTargetPosition":
                self.targets[names[args[0]]] = args[1]
                return []
            case "readForceSensor":
                return [1, [self.joints["/arm/a"], 0.0, 2.5], [0.0, 0.0, 0.0]]
            case "setStepping":
                self.stepping = args[0]
                return [False]
            case "startSimulation":
                self.running = True
                return [1]
            case "stopSimulation":
                self.running = False
                return [1]
            case "getSimulationTimeStep":
                return [0.005]
            case "step":
                self.steps += 1
                for name, goal in self.targets.items():
                    self.joints[name] += (goal - self.joints[name]) / 3
                return []
        raise KeyError(func)
