//! Stations of file operations in the time trace: records of their steps in the kernel, the cores,
//! the network and the store.
//!
//! Operations are sampled like RPCs ([`recorder::is_traced`]), calls and requests are always
//! recorded.

use apus_fs_core::client::{ClientCall, OpToken, OperationKind};
use apus_fs_core::server::CallToken;
use apus_fs_core::wire::RequestKind;
use apus_trace::{Event, recorder};

/// Gives the numbers in records their names.
pub(crate) fn name_values() {
    const OPERATIONS: [&str; OperationKind::ALL.len()] = {
        let mut names = [""; OperationKind::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = OperationKind::ALL[at].name();
            at += 1;
        }
        names
    };
    const REQUESTS: [&str; RequestKind::ALL.len()] = {
        let mut names = [""; RequestKind::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = RequestKind::ALL[at].name();
            at += 1;
        }
        names
    };
    recorder::name_values("fs_operation", &OPERATIONS);
    recorder::name_values("fs_request", &REQUESTS);
}

/// The mount has read an operation from the kernel.
pub(crate) fn operation(token: OpToken, kind: OperationKind) {
    if recorder::is_traced(token.0) {
        recorder::record(Event::FsOperation, kind as u32, token.0);
    }
}

/// The mount replies to the kernel, with the number of an error, or 0.
pub(crate) fn reply(token: OpToken, error: u32) {
    if recorder::is_traced(token.0) {
        recorder::record(Event::FsReply, error, token.0);
    }
}

/// The mount calls the server.
pub(crate) fn call(call: ClientCall, kind: RequestKind) {
    recorder::record(Event::FsCall, kind as u32, call.0);
}

/// The mount has received a response.
pub(crate) fn response(call: ClientCall) {
    recorder::record(Event::FsResponse, 0, call.0);
}

/// The server has received a request at a time in ticks of [`stamp`].
pub(crate) fn request(at: u64, call: CallToken, kind: RequestKind) {
    recorder::record_at(at, Event::FsRequest, kind as u32, call.0);
}

/// The server has committed `commits` times since `began`.
pub(crate) fn commit(began: u64, commits: u64) {
    if commits > 0 {
        let took = recorder::stamp().saturating_sub(began);
        recorder::record(Event::FsCommit, u32::try_from(commits).unwrap_or(u32::MAX), took);
    }
}

/// The server responds.
pub(crate) fn respond(call: CallToken) {
    recorder::record(Event::FsRespond, 0, call.0);
}

/// The time, for [`request`] and [`commit`].
pub(crate) fn stamp() -> u64 {
    recorder::stamp()
}
