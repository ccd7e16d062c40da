// The generated ParameterServer service, with its streams as raw bytes: payloads are not copied
// through protobuf.
#ifndef TANDEM_PS_SERVER_SERVICE_H_
#define TANDEM_PS_SERVER_SERVICE_H_

#include "proto/parameter_server.grpc.pb.h"

namespace tandem {

using ParameterServerService =
    v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::WithRawMethod_Replicate<
        v1::ParameterServer::WithAsyncMethod_Inspect<v1::ParameterServer::Service>>>;

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_SERVICE_H_
