//! Stages of an RPC.
//!
//! A request and its response pass the points below in this order. A stage is the time from one
//! point to the next point recorded for the RPC. A thread that receives its message in its own poll
//! is neither notified nor woken, so these stages are absent. The stages of an RPC always add up
//! to its round trip as measured at the client.
//!
//! For a message of several packets, `to_kernel` is the departure of its first packet, and
//! `from_kernel` the arrival of the batch that completes it. If the server has no trace, one stage
//! contains all the time between the client's packets.

use crate::merge::{RpcRecord, TracedRpc};
use apus_trace::Side;
use apus_trace::event::Event;

/// A stage, named after the point at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Stage {
    /// Location: `client`, `server` or `network`.
    pub place: &'static str,
    /// Short name of the activity.
    pub name: &'static str,
    /// First and last event, and the components that use the time.
    pub meaning: &'static str,
}

/// End of a stage: its side, and its event over the network and through shared memory.
struct StagePoint {
    side: Side,
    event: Event,
    local: Event,
    stage: Stage,
}

const fn point(
    side: Side,
    [event, local]: [Event; 2],
    place: &'static str,
    name: &'static str,
    meaning: &'static str,
) -> StagePoint {
    StagePoint { side, event, local, stage: Stage { place, name, meaning } }
}

use Event::{
    Call as Called, FromKernel, HandedOff, LocalReceived, LocalSent, Parsed, Queued, Reply,
    RequestReturned, Returned, ToKernel, Woken,
};
use Side::{Client, Server};

/// All points but the first, which is the client's call.
const POINTS: [StagePoint; STAGES - 1] = [
    point(Client, [Queued; 2], "client", "submit", "call to queued: arguments, the core's lock"),
    point(
        Client,
        [ToKernel, LocalSent],
        "client",
        "send",
        "queued to to_kernel: the send queue, the pacer",
    ),
    point(
        Server,
        [FromKernel, FromKernel],
        "network",
        "request",
        "to_kernel to from_kernel: both kernels, the network, and the time until the server polls",
    ),
    point(
        Server,
        [Parsed, LocalReceived],
        "server",
        "receive",
        "from_kernel to parsed: earlier packets of the batch, and its own",
    ),
    point(
        Server,
        [HandedOff; 2],
        "server",
        "hand off",
        "parsed to handed_off: queued until a waiter is chosen",
    ),
    point(
        Server,
        [Woken; 2],
        "server",
        "wake up",
        "handed_off to woken: the scheduler, or a spinning thread that finds it",
    ),
    point(
        Server,
        [RequestReturned; 2],
        "server",
        "return",
        "woken to request_returned: the lock again, the message to the application",
    ),
    point(
        Server,
        [Reply; 2],
        "server",
        "service",
        "request_returned to reply: the application's work",
    ),
    point(Server, [Queued; 2], "server", "submit", "reply to queued"),
    point(Server, [ToKernel, LocalSent], "server", "send", "queued to to_kernel"),
    point(Client, [FromKernel; 2], "network", "response", "to_kernel to from_kernel"),
    point(Client, [Parsed, LocalReceived], "client", "receive", "from_kernel to parsed"),
    point(Client, [HandedOff; 2], "client", "hand off", "parsed to handed_off"),
    point(Client, [Woken; 2], "client", "wake up", "handed_off to woken"),
    point(
        Client,
        [Returned; 2],
        "client",
        "return",
        "woken to returned: the message to the application",
    ),
];

/// Number of stages. The last one contains network and server if the server has no trace.
pub const STAGES: usize = 16;

/// The last stage, displayed before the client receives.
const UNTRACED: Stage = Stage {
    place: "network",
    name: "and server",
    meaning: "to_kernel to from_kernel of the client; name the server's trace to see more",
};

/// Index of [`UNTRACED`].
const UNTRACED_INDEX: usize = STAGES - 1;

/// Returns a stage by its index.
#[must_use]
pub fn stage(number: usize) -> Stage {
    POINTS.get(number).map_or(UNTRACED, |point| point.stage)
}

/// Returns the indices of all stages, in display order.
pub fn in_order() -> impl Iterator<Item = usize> {
    let server = POINTS.iter().position(|point| point.stage.place == "network").unwrap_or(0);
    (0..server).chain([UNTRACED_INDEX]).chain(server..UNTRACED_INDEX)
}

/// Returns the duration of each stage of an RPC in nanoseconds, `None` for absent stages. Returns
/// `None` if the trace lacks the call or the return.
#[must_use]
pub fn stages(rpc: &TracedRpc) -> Option<[Option<i64>; STAGES]> {
    let mut previous = rpc.first(Client, Called)?;
    rpc.first(Client, Returned)?;
    let mut all = [None; STAGES];
    for (number, point) in POINTS.iter().enumerate() {
        let Some(record) = point.record(rpc) else { continue };
        let beyond = previous.side == Client
            && point.side == Client
            && matches!(point.event, FromKernel | Parsed)
            && matches!(previous.event, ToKernel | LocalSent);
        all[if beyond { UNTRACED_INDEX } else { number }] = Some(record.at - previous.at);
        previous = record;
    }
    Some(all)
}

/// Returns whether the RPC used shared memory instead of the network.
#[must_use]
pub fn is_local(rpc: &TracedRpc) -> bool {
    rpc.has(LocalSent) || rpc.has(LocalReceived)
}

impl StagePoint {
    fn record<'a>(&self, rpc: &'a TracedRpc) -> Option<&'a RpcRecord> {
        match self.event {
            // The batch that completed the message.
            FromKernel => {
                let whole = rpc.first(self.side, Parsed)?;
                rpc.last_until(self.side, FromKernel, whole.at)
            }
            event => rpc.first(self.side, event).or_else(|| rpc.first(self.side, self.local)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_shown_once() {
        let mut order: Vec<usize> = in_order().collect();
        assert_eq!(stage(order[2]), UNTRACED, "after the client has sent");
        order.sort_unstable();
        assert_eq!(order, (0..STAGES).collect::<Vec<_>>());
    }
}
