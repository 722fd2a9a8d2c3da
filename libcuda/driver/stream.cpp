#include <algorithm>

#include "capture.hpp"
#include "launch.hpp"

// Streams and events.

using namespace simt::driver;

namespace {

Event& event_of(CUevent handle) {
  return object_of<Event>(handle);
}

/// Difference of the simulated times at which recorded events were reached, in ns.
double nanoseconds_between(Event& start, Event& end) {
  require_not_captured(start);
  require_not_captured(end);
  require(start.id != 0 && end.id != 0, CUDA_ERROR_INVALID_HANDLE);
  require(((start.flags | end.flags) & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
  Device& device = start.context->device;
  synchronize(start);  // programs have usually waited already; otherwise wait now
  synchronize(end);
  return device.connection.call(ElapsedRequest{.start = start.id, .end = end.id});
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return guarded([&] {
    require(stream != nullptr && flags <= CU_STREAM_NON_BLOCKING);
    Context& context = current_context();
    priority = std::clamp(priority, -5, 0);
    if (priority != 0)
      note_without_effect(context.device, "priorities of streams (cudaStreamCreateWithPriority)");
    Stream& made = all<Stream>().make(context, Process::get().next_id++, flags, priority);
    context.device.connection.send(StreamRequest{.stream = made.id, .blocking = flags == CU_STREAM_DEFAULT});
    *stream = handle_of<CUstream>(&made);
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream) {
  return guarded([&] {
    Stream& s = object_of<Stream>(stream);
    leave_capture(s);
    all<Stream>().destroy(s);
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return guarded([&] {
    Stream& s = stream_of(stream);
    require_no_implicit_capture(s);
    require_not_captured(s);
    require_no_capture();
    synchronize(s);
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return guarded([&] {
    Stream& s = stream_of(stream);
    require_no_implicit_capture(s);
    require_not_captured(s);
    require_no_capture();
    require(is_done(s), CUDA_ERROR_NOT_READY);
  });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return guarded([&] {
    require(priority != nullptr);
    *priority = stream_of(stream).priority;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return guarded([&] {
    require(flags != nullptr);
    *flags = stream_of(stream).flags;
  });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return guarded([&] {
    require(id != nullptr);
    *id = stream_of(stream).id;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return guarded([&] {
    require(context != nullptr);
    *context = handle_of<CUcontext>(stream_of(stream).context);
  });
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return guarded([&] {
    require(device != nullptr);
    *device = stream_of(stream).context->device.ordinal;
  });
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID which, CUstreamAttrValue* value) {
  return guarded([&] {
    require(value != nullptr);
    const Stream& s = stream_of(stream);
    *value = {};
    if (which == CU_STREAM_ATTRIBUTE_PRIORITY) value->priority = s.priority;
    if (const auto found = s.attributes.find(which); found != s.attributes.end()) *value = found->second;
  });
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID which, const CUstreamAttrValue* value) {
  return guarded([&] {
    require(value != nullptr);
    Stream& s = stream_of(stream);
    if (which == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW)
      s.window = window_of(s.context->device, value->accessPolicyWindow);
    s.attributes[which] = *value;
  });
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return guarded([&] {
    Stream& target = stream_of(to);
    const Stream& source = stream_of(from);
    target.attributes = source.attributes;
    target.window = source.window;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return guarded([&] {
    require(flags <= CU_EVENT_WAIT_EXTERNAL);
    submit(stream_of(stream), Wait{event_of(event), flags == CU_EVENT_WAIT_EXTERNAL});
  });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* argument, unsigned flags) {
  return guarded([&] {
    require(function != nullptr && flags == 0);
    submit(stream_of(stream), StreamCallback{function, stream, argument});
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return guarded([&] {
    require(event != nullptr && flags < 8);
    require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
    *event = handle_of<CUevent>(&all<Event>().make(current_context(), flags));
  });
}

CUresult cuEventDestroy(CUevent event) {
  return guarded([&] {
    Event& e = event_of(event);
    if (e.id != 0) e.context->device.connection.send(ForgetRequest{.event = e.id});
    all<Event>().destroy(e);
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return guarded([&] {
    require(flags <= CU_EVENT_RECORD_EXTERNAL);
    Stream& s = stream_of(stream);
    Event& e = event_of(event);
    require(&e.context->device == &s.context->device, CUDA_ERROR_INVALID_HANDLE);
    submit(s, Record{e, flags == CU_EVENT_RECORD_EXTERNAL});
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventSynchronize(CUevent event) {
  return guarded([&] {
    Event& e = event_of(event);
    require_not_captured(e);
    require_no_capture();
    synchronize(e);
  });
}

CUresult cuEventQuery(CUevent event) {
  return guarded([&] {
    Event& e = event_of(event);
    require_not_captured(e);
    require_no_capture();
    require(is_done(e), CUDA_ERROR_NOT_READY);
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return guarded([&] {
    require(milliseconds != nullptr);
    *milliseconds = static_cast<float>(nanoseconds_between(event_of(start), event_of(end)) / 1e6);
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return (cuEventElapsedTime)(milliseconds, start, end);
}
