//! What comes through shared memory, as the leader hands it to the core.

use apus_local::{Disconnected, Pair, PairEvent, PollEvent};
use apus_proto::{Execution, FailureKind, RpcError};
use bytes::Bytes;
use std::sync::Arc;

/// Something that came through shared memory.
#[derive(Debug)]
pub(crate) enum LocalEvent {
    /// A request of a client.
    Request { pair: Arc<Pair>, id: u64, payload: Bytes },
    /// The client does not wait for the response any more.
    Cancelled { pair: u64, id: u64 },
    /// The end of a call, as the server reports it.
    Ended { pair: u64, id: u64, result: Result<Bytes, RpcError> },
    /// The peer asks to freeze the trace.
    Freeze { pair: Arc<Pair> },
    /// There is room to send again.
    Room,
    /// A pair has ended.
    Disconnected { pair: Arc<Pair>, why: Disconnected },
}

impl LocalEvent {
    /// Translates an event of `pair`.
    pub(crate) fn new(pair: &Arc<Pair>, event: PollEvent) -> Self {
        let number = pair.number();
        let failed = |kind, execution| Err(RpcError { kind, execution });
        let event = match event {
            PollEvent::Disconnected(why) => return Self::Disconnected { pair: pair.clone(), why },
            PollEvent::Event(event) => event,
        };
        match event {
            PairEvent::Request { id, payload } => Self::Request { pair: pair.clone(), id, payload },
            PairEvent::Cancelled { id } => Self::Cancelled { pair: number, id },
            PairEvent::Response { id, payload } => {
                Self::Ended { pair: number, id, result: Ok(payload) }
            }
            PairEvent::Refused { id, why } => {
                let before = why.is_before_execution();
                let execution = if before { Execution::NotExecuted } else { Execution::Unknown };
                let result = failed(FailureKind::Refused(why), execution);
                Self::Ended { pair: number, id, result }
            }
            PairEvent::Declined { id, length } => {
                let kind = FailureKind::ResponseTooLarge { length };
                Self::Ended { pair: number, id, result: failed(kind, Execution::Executed) }
            }
            PairEvent::Freeze => Self::Freeze { pair: pair.clone() },
            // Room, or an event of a later version: the waiters try again.
            _ => Self::Room,
        }
    }
}
