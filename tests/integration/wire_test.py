"""A client in another language, written from proto/ alone: the protocol is what the files say, and a
message that breaks it is refused by name and changes nothing."""
import math
import struct

import grpc

import data
import protos
from cluster import Cluster, ClusterTest, wait_until
from protos import cluster_pb2, coordinator_pb2, parameter_server_pb2

REPLICAS = 4
RATE = 0.5
Code = grpc.StatusCode


def floats(payload):
    return struct.unpack(f"<{len(payload) // 4}f", payload)


def payload_of(values):
    return struct.pack(f"<{len(values)}f", *values)


class WireTest(ClusterTest):
    """A coordinator, one server, and this test as the worker. Every step has 64 examples, 16 a replica."""

    def setUp(self):
        super().setUp()
        job = data.picture_job(self.folder)
        self.cluster = Cluster(self, job, set=[f"optimizer.sgd.learning_rate={RATE}"])
        server = self.cluster.server()
        self.coordinator = protos.connect(self.cluster.address)
        self.addCleanup(self.coordinator.close)
        self.registered = protos.call(
            self.coordinator, "tandem.v1.Coordinator/Register",
            coordinator_pb2.RegisterRequest(role=coordinator_pb2.ROLE_WORKER, cpu_isa="avx2",
                                            incarnation="a client in Python"),
            coordinator_pb2.RegisterResponse)
        self.seen = 0
        self.state = wait_until(self.heartbeat, "training does not begin")
        self.map = self.state.map
        self.blocks = self.map.shards[0].blocks
        self.elements = sum(block.end - block.begin for block in self.blocks)
        self.address = self.map.shards[0].primary.address
        self.assertEqual(self.address, server.address())
        self.server = protos.connect(self.address)
        self.addCleanup(self.server.close)

    def heartbeat(self):
        """The state, once training has begun."""
        response = protos.call(
            self.coordinator, "tandem.v1.Coordinator/Heartbeat",
            coordinator_pb2.HeartbeatRequest(node=self.registered.node, seen=self.seen,
                                             incarnation="a client in Python"),
            coordinator_pb2.HeartbeatResponse)
        self.seen = max(self.seen, response.state.sequence)
        return response.state.phase == coordinator_pb2.PHASE_TRAINING and response.state

    def exchange(self, messages, raw=False):
        """One call with these messages: what was pushed and pulled, or None, and the payload."""
        stub = self.server.stream_stream(
            "/tandem.v1.ParameterServer/Exchange",
            request_serializer=(lambda m: m) if raw else (lambda m: m.SerializeToString()),
            response_deserializer=parameter_server_pb2.ExchangeResponse.FromString)
        pushed = pulled = None
        payload = b""
        for response in stub(iter(messages), timeout=protos.CALL_TIMEOUT_S):
            if response.HasField("pushed"):
                pushed = pushed or parameter_server_pb2.Pushed()
                pushed.count += response.pushed.count
                pushed.duplicates += response.pushed.duplicates
                pushed.version = response.pushed.version
            if response.HasField("pulled"):
                pulled = response.pulled
            payload += response.payload
        if pulled is not None:
            self.assertEqual(pulled.payload_bytes, len(payload))
        return pushed, pulled, payload

    def push(self, step=0, level=0, index=0, values=None, **changes):
        """A message with the push of one node, all gradients `values` (default 1.0)."""
        leaves = range(index << level, min((index + 1) << level, REPLICAS))
        push = parameter_server_pb2.Push(
            map_epoch=self.map.epoch, step=step, level=level, index=index, blocks=self.blocks,
            sums=[cluster_pb2.Sums(examples=16, loss=1.0, metrics=[8.0]) for _ in leaves])
        for name, value in changes.items():
            push.ClearField(name)
            if isinstance(value, list):
                getattr(push, name).extend(value)
            else:
                setattr(push, name, value)
        payload = payload_of([1.0] * self.elements) if values is None else values
        return parameter_server_pb2.ExchangeRequest(push=push, payload=payload)

    def pull(self, version=0):
        return parameter_server_pb2.ExchangeRequest(
            pull=parameter_server_pb2.Pull(map_epoch=self.map.epoch, version=version))

    def weights(self, version):
        _, pulled, payload = self.exchange([self.pull(version)])
        self.assertEqual(pulled.version, version)
        return floats(payload)

    def held(self):
        return protos.inspect(self.address, chunk_hashes=True)

    def check_refused(self, messages, code, pattern, raw=False):
        """The call ends with `code` and words that match, and the shard is as before."""
        before = self.held()
        with self.assertRaises(grpc.RpcError) as caught:
            self.exchange(messages, raw)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertRegex(caught.exception.details(), pattern)
        self.assertEqual(self.held(), before)

    # ---- What works ----

    def test_registration_brings_the_job(self):
        self.assertEqual(self.registered.job.name, "pictures")
        self.assertEqual(self.registered.job.training.replicas, REPLICAS)
        self.assertEqual(list(self.registered.example_shape), [data.SIDE, data.SIDE])
        self.assertEqual(self.registered.train_examples, 1003)
        self.assertEqual([v.name for v in self.map.variables],
                         ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"])
        self.assertEqual(self.state.cpu_isa, "avx2")

    def test_lease_names_the_first_work(self):
        lease = protos.call(
            self.coordinator, "tandem.v1.Coordinator/Lease",
            coordinator_pb2.LeaseRequest(node=self.registered.node, map_epoch=self.map.epoch,
                                         incarnation="a client in Python"),
            coordinator_pb2.LeaseResponse)
        self.assertFalse(lease.ended)
        work = lease.work[0]
        self.assertEqual((work.map_epoch, work.step_begin, work.level, work.index),
                         (self.map.epoch, 0, 2, 0))
        self.assertGreater(work.step_end, 0)

    def test_pull_gives_the_initial_weights(self):
        weights = self.weights(0)
        self.assertEqual(len(weights), self.elements)
        at = 0
        for block in self.blocks:
            values = weights[at:at + block.end - block.begin]
            at += len(values)
            if block.variable.endswith("bias"):
                self.assertEqual(set(values), {0.0})
            else:  # Glorot uniform: within its bound, and near it.
                shape = [v.shape for v in self.map.variables if v.name == block.variable][0]
                bound = math.sqrt(6 / sum(shape))
                self.assertLessEqual(max(map(abs, values)), bound)
                self.assertGreater(max(map(abs, values)), 0.9 * bound)

    def test_push_and_pull_in_one_message(self):
        """The root of the tree is the whole step: SGD moves every weight by the rate."""
        before = self.weights(0)
        message = self.push(level=2)
        message.pull.CopyFrom(self.pull(version=1).pull)
        pushed, pulled, payload = self.exchange([message])
        self.assertEqual((pushed.count, pushed.duplicates, pushed.version), (1, 0, 1))
        self.assertEqual(pulled.version, 1)
        rate = struct.unpack("<f", struct.pack("<f", RATE))[0]
        expected = floats(payload_of([w - rate for w in before]))
        self.assertEqual(floats(payload), expected)
        self.assertEqual(self.held().version, 1)

    def test_micro_batches_add_up_in_any_order_and_size(self):
        before = self.weights(0)
        for index in (3, 0, 2):
            self.exchange([self.push(index=index, values=payload_of([0.25] * self.elements))])
            self.assertEqual(self.held().version, 0)
        # The last one in pieces that end inside an element.
        whole = self.push(index=1, values=payload_of([0.25] * self.elements))
        payload = whole.payload
        whole.payload = payload[:7]
        rest = [parameter_server_pb2.ExchangeRequest(payload=payload[at:at + 1001])
                for at in range(7, len(payload), 1001)]
        pushed, _, _ = self.exchange([whole, *rest])
        self.assertEqual((pushed.count, pushed.version), (1, 1))
        self.assertEqual(self.weights(1), floats(payload_of([w - RATE for w in before])))

    def test_pull_waits_for_its_version(self):
        stub = self.server.stream_stream(
            "/tandem.v1.ParameterServer/Exchange",
            request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=parameter_server_pb2.ExchangeResponse.FromString)
        waiting = stub(iter([self.pull(version=1)]), timeout=protos.CALL_TIMEOUT_S)
        self.exchange([self.push(level=2)])
        self.assertEqual(next(waiting).pulled.version, 1)

    def test_duplicates_are_counted_and_change_nothing(self):
        pushed, _, _ = self.exchange([self.push(index=0)] * 2)
        self.assertEqual((pushed.count, pushed.duplicates), (2, 1))
        self.exchange([self.push(level=2)])  # Covers the node, and takes its place.
        before = self.held()
        other = payload_of([5.0] * self.elements)
        for level, index in ((0, 0), (1, 1), (2, 0)):
            pushed, _, _ = self.exchange([self.push(level=level, index=index, values=other)])
            self.assertEqual((pushed.duplicates, pushed.version), (1, 1))
        after = self.held()
        self.assertEqual(after.duplicates_ignored, before.duplicates_ignored + 3)
        self.assertEqual((after.version, after.chunk_hashes), (1, before.chunk_hashes))

    def test_old_weights_stay_until_the_next_step_begins(self):
        before = self.weights(0)
        self.exchange([self.push(level=2)])
        self.assertEqual(self.weights(0), before)
        self.exchange([self.push(step=1, index=0)])
        self.check_refused([self.pull(version=0)], Code.OUT_OF_RANGE, "version 0.*is at 1")

    def test_inspect_adds_up_what_was_applied(self):
        self.exchange([self.push(level=2)])
        held = self.held()
        self.assertEqual((held.map_epoch, list(held.blocks)), (self.map.epoch, list(self.blocks)))
        self.assertEqual([(e.examples, e.loss, list(e.metrics)) for e in held.epochs],
                         [(64, 4.0, [32.0])])
        chunks = sum(-(-(b.end - b.begin) // 1024) for b in self.blocks)
        self.assertEqual(len(held.chunk_hashes), 16 * chunks)
        self.assertEqual(held.staged_bytes, 0)

    def test_health(self):
        for channel in (self.server, self.coordinator):
            for service in ("", "tandem.v1.ParameterServer"):
                answer = protos.call(channel, "grpc.health.v1.Health/Check",
                                     protos.health_pb2.HealthCheckRequest(service=service),
                                     protos.health_pb2.HealthCheckResponse)
                self.assertEqual(answer.status, protos.health_pb2.HealthCheckResponse.SERVING)
        with self.assertRaises(grpc.RpcError) as caught:
            protos.call(self.server, "grpc.health.v1.Health/Check",
                        protos.health_pb2.HealthCheckRequest(service="other"),
                        protos.health_pb2.HealthCheckResponse)
        self.assertEqual(caught.exception.code(), Code.NOT_FOUND)

    # ---- What is refused ----

    def blocks_with(self, number, **changes):
        blocks = [cluster_pb2.Block.FromString(b.SerializeToString()) for b in self.blocks]
        for name, value in changes.items():
            setattr(blocks[number], name, value)
        return blocks

    def test_wrong_pushes_are_refused(self):
        whole = payload_of([1.0] * self.elements)
        nan = payload_of([1.0] * (self.elements - 1) + [math.nan])
        infinite = payload_of([math.inf] + [1.0] * (self.elements - 1))
        sums = [cluster_pb2.Sums(examples=16, loss=1.0)]
        extra = [*self.blocks, self.blocks[0]]
        cases = {
            "unknown variable": (dict(blocks=self.blocks_with(1, variable="dense/nothing")),
                                 Code.INVALID_ARGUMENT, r'blocks\[1\]: unknown variable "dense/nothing"'),
            "wrong begin": (dict(blocks=self.blocks_with(0, begin=1024)), Code.INVALID_ARGUMENT,
                            r"blocks\[0\]: expected dense/kernel\[0, 2048\)"),
            "wrong end": (dict(blocks=self.blocks_with(0, end=2**63)), Code.INVALID_ARGUMENT,
                          r"blocks\[0\]: expected dense/kernel"),
            "no blocks": (dict(blocks=[]), Code.INVALID_ARGUMENT, r"blocks\[0\]: expected"),
            "a block too many": (dict(blocks=extra), Code.INVALID_ARGUMENT,
                                 rf"blocks\[{len(self.blocks)}\]: this shard does not hold"),
            "short payload": (dict(values=whole[:-4]), Code.INVALID_ARGUMENT, "inside a payload"),
            "no payload": (dict(values=b""), Code.INVALID_ARGUMENT, "inside a payload"),
            "long payload": (dict(values=whole + b"\0"), Code.INVALID_ARGUMENT,
                             f"{len(whole) + 1} bytes.*expected {len(whole)}"),
            "not a number": (dict(values=nan), Code.INVALID_ARGUMENT,
                             r"dense_1/bias\[4\] is not finite"),
            "infinite": (dict(values=infinite), Code.INVALID_ARGUMENT,
                         r"dense/kernel\[0\] is not finite"),
            "far step": (dict(step=7), Code.FAILED_PRECONDITION, "step 7.*is at step 0"),
            "step past the end": (dict(step=2**63), Code.INVALID_ARGUMENT, "has 32 steps"),
            "stale map": (dict(map_epoch=99), Code.FAILED_PRECONDITION,
                          f"map epoch 99 .*is {self.map.epoch}"),
            "index outside the tree": (dict(index=4, sums=sums), Code.INVALID_ARGUMENT,
                                       r"node \(0, 4\).*no such node.*4 replicas"),
            "level outside the tree": (dict(level=3), Code.INVALID_ARGUMENT, "no such node"),
            "absurd level": (dict(level=2**31, index=0, sums=sums), Code.INVALID_ARGUMENT,
                             "no such node"),
            "absurd index": (dict(index=2**63, sums=sums), Code.INVALID_ARGUMENT, "no such node"),
            "empty, with examples": (dict(empty=True, values=b""), Code.INVALID_ARGUMENT,
                                     "empty is set"),
            "no sums": (dict(sums=[]), Code.INVALID_ARGUMENT, "has 0 sums; expected one"),
            "wrong count of examples": (dict(sums=[cluster_pb2.Sums(examples=17)]),
                                        Code.INVALID_ARGUMENT, "counts 17 examples.*has 16"),
            "infinite loss": (dict(sums=[cluster_pb2.Sums(examples=16, loss=math.inf)]),
                              Code.INVALID_ARGUMENT, "finite"),
            "too many metrics": (dict(sums=[cluster_pb2.Sums(examples=16, metrics=[1, 2])]),
                                 Code.INVALID_ARGUMENT, "at most 1 metrics"),
        }
        for name, (changes, code, pattern) in cases.items():
            with self.subTest(name):
                level, index = changes.get("level", 0), changes.get("index", 0)
                plain = {k: v for k, v in changes.items() if k not in ("level", "index")}
                if level > 2 or index > 3:
                    message = self.push(**plain)
                    message.push.level, message.push.index = level, index
                else:
                    message = self.push(level=level, index=index, **plain)
                self.check_refused([message], code, pattern)

    def test_wrong_order_is_refused(self):
        part = self.push()
        part.payload = part.payload[:8]
        lone = parameter_server_pb2.ExchangeRequest(payload=b"12345678")
        nothing = parameter_server_pb2.ExchangeRequest()
        loaded = self.pull()
        loaded.payload = b"1234"
        for name, messages, pattern in (
                ("payload of nothing", [lone], "expected push or pull"),
                ("an empty message", [nothing], "expected push or pull"),
                ("a push inside a push", [part, self.push()], "inside a payload"),
                ("a pull inside a push", [part, self.pull()], "inside a payload"),
                ("a pull with a payload", [loaded], "a pull has none")):
            with self.subTest(name):
                self.check_refused(messages, Code.INVALID_ARGUMENT, pattern)

    def test_wrong_pulls_are_refused(self):
        stale = self.pull()
        stale.pull.map_epoch = 99
        self.check_refused([stale], Code.FAILED_PRECONDITION, "map epoch 99")
        self.check_refused([self.pull(version=2**62)], Code.INVALID_ARGUMENT, "has 32 steps")

    def test_bytes_that_are_no_message_are_refused(self):
        """C50."""
        good = self.push().SerializeToString()
        for name, garbage in (
                ("noise", b"\xff" * 100),
                ("cut inside the header", good[:20]),
                ("cut inside the payload", good[:-100]),
                ("absurd length", b"\x7a\xff\xff\xff\xff\x0f"),
                ("length of 2^64 - 1", b"\x7a" + b"\xff" * 9 + b"\x01"),
                ("length of a header that is not there", b"\x0a\xff\xff\xff\x7f"),
                ("something behind the payload", good + b"\x0a\x00"),
                ("field number 0", b"\x00\x00"),
                ("ends a group that did not begin", b"\x0c")):
            with self.subTest(name):
                self.check_refused([garbage], Code.INVALID_ARGUMENT, "payload|message", raw=True)

    def test_message_past_the_limit_is_refused(self):
        big = parameter_server_pb2.ExchangeRequest(payload=bytes((16 << 20) + 4))
        big.push.CopyFrom(self.push().push)
        before = self.held()
        with self.assertRaises(grpc.RpcError) as caught:
            self.exchange([big])
        self.assertIn(caught.exception.code(), (Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED))
        self.assertEqual(self.held(), before)

    def test_wrong_control_messages_are_refused(self):
        register, lease = coordinator_pb2.RegisterRequest, coordinator_pb2.LeaseRequest
        for name, request, code in (
                ("no role", register(incarnation="x"), Code.INVALID_ARGUMENT),
                ("no incarnation", register(role=coordinator_pb2.ROLE_WORKER, cpu_isa="avx2"),
                 Code.INVALID_ARGUMENT),
                ("long incarnation", register(role=coordinator_pb2.ROLE_WORKER, cpu_isa="avx2",
                                              incarnation="x" * 65), Code.INVALID_ARGUMENT),
                ("server without an address", register(role=coordinator_pb2.ROLE_SERVER,
                                                       incarnation="x"), Code.INVALID_ARGUMENT),
                ("unknown instruction set", register(role=coordinator_pb2.ROLE_WORKER,
                                                     incarnation="x", cpu_isa="mmx"),
                 Code.PERMISSION_DENIED),
                ("lease of nobody", lease(node=99, incarnation="x"), Code.FAILED_PRECONDITION),
                ("lease of another life", lease(node=self.registered.node, incarnation="x"),
                 Code.FAILED_PRECONDITION)):
            with self.subTest(name):
                method = "Register" if isinstance(request, register) else "Lease"
                with self.assertRaises(grpc.RpcError) as caught:
                    protos.call(self.coordinator, f"tandem.v1.Coordinator/{method}", request,
                                coordinator_pb2.RegisterResponse)
                self.assertEqual(caught.exception.code(), code)
        self.assertTrue(self.cluster.coordinator.runs())


