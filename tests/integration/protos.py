"""The messages of proto/, compiled when a test runs, and the calls of the services by name."""
import atexit
import glob
import importlib
import shutil
import subprocess
import sys
import tempfile

import grpc

_FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _FOLDER)
subprocess.run(["protoc", "--proto_path=.", f"--python_out={_FOLDER}", *glob.glob("proto/*.proto"),
                "third_party/grpc_health/health.proto"], check=True)
sys.path.insert(0, _FOLDER)

cluster_pb2 = importlib.import_module("proto.cluster_pb2")
coordinator_pb2 = importlib.import_module("proto.coordinator_pb2")
parameter_server_pb2 = importlib.import_module("proto.parameter_server_pb2")
health_pb2 = importlib.import_module("third_party.grpc_health.health_pb2")

CALL_TIMEOUT_S = 20


def connect(address):
    return grpc.insecure_channel(address, options=[
        ("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])


def call(channel, method, request, response_type):
    """One unary call, for example of "tandem.v1.Coordinator/Register"."""
    stub = channel.unary_unary("/" + method, request_serializer=lambda m: m.SerializeToString(),
                               response_deserializer=response_type.FromString)
    return stub(request, timeout=CALL_TIMEOUT_S)


def inspect(address, chunk_hashes=False, shard=0):
    """What the server at `address` holds of a shard; None when it does not hold it."""
    with connect(address) as channel:
        try:
            return call(channel, "tandem.v1.ParameterServer/Inspect",
                        parameter_server_pb2.InspectRequest(chunk_hashes=chunk_hashes,
                                                            shard=shard),
                        parameter_server_pb2.InspectResponse)
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.NOT_FOUND):
                raise
            return None


def holdings(address, shards):
    """What the server at `address` holds, by shard, of a map of so many."""
    found = {shard: inspect(address, shard=shard) for shard in range(shards)}
    return {shard: held for shard, held in found.items() if held is not None}
