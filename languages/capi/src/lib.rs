//! The C interface of apus: `include/apus.h`, with `docs/c.md` as its manual.
//!
//! Rust programs use the crate `apus`. Invariants of every function:
//!
//! - **CAPI-1** No panic crosses the boundary: it becomes [`Status::Internal`].
//! - **CAPI-2** A null pointer or another invalid argument is an error without any effect.
//! - **CAPI-3** A function that fails writes only the error and takes no ownership: buffers and
//!   results stay unchanged. The exception is `apus_reply`, which always takes the request.
//! - **CAPI-4** Any number of threads may use an endpoint. A request, a buffer or an error belongs
//!   to one thread at a time.
//! - **CAPI-5** There are no callbacks and no hidden state between calls.

mod address;
mod boundary;
mod buffer;
mod call;
mod completion;
mod endpoint;
mod error;
mod metrics;
mod request;
mod version;

pub use address::{Address, apus_address_format, apus_address_parse};
pub use apus_bindings::Status;
pub use buffer::{Buffer, apus_buffer_free};
pub use call::{APUS_IDEMPOTENT, APUS_NO_WAIT, CallOptions, apus_call, apus_cancel, apus_send};
pub use completion::{CompletionC, apus_recv_completions};
pub use endpoint::{
    APUS_DESCRIPTORS, EndpointC, apus_endpoint_address, apus_endpoint_bind, apus_endpoint_client,
    apus_endpoint_completion_descriptor, apus_endpoint_drain, apus_endpoint_free,
    apus_endpoint_request_descriptor, apus_endpoint_shutdown,
};
pub use error::{APUS_ERROR_TEXT_SIZE, ErrorC, ExecutionC};
pub use metrics::{apus_endpoint_metric, apus_endpoint_metrics};
pub use request::{
    RequestC, apus_recv_requests, apus_reply, apus_request_address, apus_request_free,
    apus_request_payload,
};
pub use version::{
    APUS_VERSION_MAJOR, APUS_VERSION_MINOR, APUS_VERSION_PATCH, apus_status_name, apus_version,
};
