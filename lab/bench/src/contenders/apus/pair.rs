//! A shared-memory pair without an endpoint, between two processes of this host.
//!
//! The crate `apus-local` alone: no deadlines, no cookies, one peer, one thread on each side. The
//! difference from an endpoint's time is the cost of the endpoint's guarantees.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus::Bytes;
use apus_local::{
    ConnectError, Connecting, Disconnected, Listener, LocalConfig, Pair, PairEvent, PeerName,
    ReceiveQuota, SendError,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::contenders::baseline::unix::socket::reserve_address;
use crate::contenders::contender::Contender;
use apus_measure::exchange::Calls;
use apus_measure::meter::Meter;
use apus_measure::ping_pong::ping_pong;
use apus_measure::plan::{Plan, Replies, Side};
use apus_measure::process::wake_on_stop;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Stop};

/// Requests and replies over a pair without an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarePair {
    /// Number of outstanding calls.
    pub calls: Calls,
}

/// Time limit of the handshake. Chosen by us: ten thousand times its usual duration.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

impl BarePair {
    const fn replies(self) -> Replies {
        match self.calls {
            Calls::OneByOne => Replies::Echo,
            Calls::Many(replies) => replies,
        }
    }
}

impl Contender for BarePair {
    fn name(&self) -> &'static str {
        "apus-local-pair"
    }

    fn settings(&self) -> String {
        "one pair of apus-local without an endpoint, default sizes; messages that are ready leave \
         together"
            .to_owned()
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let (_reserved, address) = reserve_address()?;
        let listener = Listener::bind(&PeerName::of(address), &LocalConfig::default())
            .map_err(|error| Error::endpoint(format!("listen at {address}"), error))?;
        wake_on_stop(&listener, control.stop())?;
        control.ready(address)?;
        let Some(pair) = accept(&listener, control.stop())? else { return Ok(Side::default()) };
        close_on_stop(&pair, control.stop());
        match self.replies() {
            Replies::Echo => {
                answer(&pair, plan, |payload| payload)?;
                Ok(Side::default())
            }
            Replies::Short => {
                let reply = Bytes::from_static(&Replies::SHORT);
                let mut meter = None;
                answer(&pair, plan, |payload| {
                    let meter = meter.get_or_insert_with(|| Meter::start(plan));
                    meter.count(clock::now(), 1, payload.len() as u64);
                    reply.clone()
                })?;
                Ok(meter.map_or_else(Side::default, Meter::finish))
            }
        }
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let pair = Arc::new(connect(server)?);
        close_on_stop(&pair, control.stop());
        let caller = Caller { pair: &pair, server, plan };
        let done = match self.calls {
            Calls::OneByOne => caller.one_by_one(),
            Calls::Many(replies) => caller.many(replies.length(plan.size)),
        };
        match done {
            Err(_) if control.stop().is_asked() => Ok(Side::default()),
            done => done,
        }
    }
}

/// Returns both sides of a pair, the client's first, for use by one thread.
pub fn both_sides() -> Result<(Pair, Pair), Error> {
    let (_reserved, address) = reserve_address()?;
    let (name, config) = (PeerName::of(address), LocalConfig::default());
    let handshake = || {
        let listener = Listener::bind(&name, &config)?;
        let mut client = Connecting::start(&name, &config)?;
        // Each side detects the other's part of the handshake when it advances.
        let mut server = listener.accept()?.ok_or(ConnectError::TimedOut)?;
        let server = server.advance().map_err(ConnectError::Rejected)?;
        let client = client.advance()?;
        client.zip(server).ok_or(ConnectError::TimedOut)
    };
    handshake().map_err(broken(address))
}

fn connect(server: SocketAddr) -> Result<Pair, Error> {
    let connecting = Connecting::start(&PeerName::of(server), &LocalConfig::default());
    connecting.and_then(|connecting| connecting.finish(HANDSHAKE_TIMEOUT)).map_err(broken(server))
}

fn broken(server: SocketAddr) -> impl Fn(ConnectError) -> Error {
    move |error| Error::endpoint(format!("share memory with {server}"), error)
}

/// Returns the pair with the first client that connects; `None` once the server must stop.
fn accept(listener: &Listener, stop: &Stop) -> Result<Option<Arc<Pair>>, Error> {
    let refuse = |error| Error::endpoint("accept a client".to_owned(), error);
    let wait = |socket: PollFd<'_>| {
        poll(&mut [socket], None).doing(|| "wait for a client".to_owned()).map(drop)
    };
    let mut accepting = loop {
        wait(PollFd::new(listener, PollFlags::IN))?;
        if stop.is_asked() {
            return Ok(None);
        }
        if let Some(accepting) = listener.accept().map_err(refuse)? {
            break accepting;
        }
    };
    wake_on_stop(&accepting, stop)?;
    loop {
        wait(PollFd::new(&accepting, PollFlags::IN))?;
        if stop.is_asked() {
            return Ok(None);
        }
        let pair = accepting.advance().map_err(|why| refuse(ConnectError::Rejected(why)))?;
        if let Some(pair) = pair {
            return Ok(Some(Arc::new(pair)));
        }
    }
}

fn close_on_stop(pair: &Arc<Pair>, stop: &Stop) {
    let pair = Arc::clone(pair);
    stop.wake_with(move || pair.close());
}

/// Answers each request until the client disconnects. Ready replies leave together.
fn answer(pair: &Pair, plan: &Plan, mut reply: impl FnMut(Bytes) -> Bytes) -> Result<(), Error> {
    let spin = plan.poll.spin_for();
    let mut events = Vec::new();
    // Ready replies, oldest first.
    let mut ready = VecDeque::new();
    let mut exchange = || {
        pair.wait(spin, None);
        pair.receive(ReceiveQuota::default(), &mut events)?;
        for event in events.drain(..) {
            if let PairEvent::Request { id, payload } = event {
                ready.push_back((id, [reply(payload)]));
            }
        }
        let mut batch = pair.batch()?;
        while let Some((id, reply)) = ready.front() {
            match batch.send(*id, reply) {
                // The wait also ends when the client has read messages and freed space.
                Err(SendError::Full) => break,
                sent => sent?,
            };
            ready.pop_front();
        }
        Ok(batch.finish()?)
    };
    loop {
        match exchange() {
            Ok(()) => {}
            Err(
                error @ (SendError::Disconnected(Disconnected::Violation(_))
                | SendError::TooLarge { .. }),
            ) => {
                return Err(Error::endpoint("answer requests".to_owned(), error));
            }
            // The client has disconnected, or this side must stop.
            Err(_) => return Ok(()),
        }
    }
}

/// Client side of the pair.
struct Caller<'a> {
    pair: &'a Pair,
    server: SocketAddr,
    plan: &'a Plan,
}

impl Caller<'_> {
    /// Makes one call after another.
    fn one_by_one(&self) -> Result<Side, Error> {
        let request = [Bytes::from(vec![0; self.plan.size])];
        let mut events = Vec::new();
        ping_pong(self.plan, |id| {
            self.pair.send(id, &request).map_err(|error| self.broken(error))?;
            while events.is_empty() {
                self.receive(&mut events)?;
            }
            events.drain(..).try_for_each(|event| self.expect(event, self.plan.size).map(drop))?;
            Ok(true)
        })
    }

    /// Keeps the plan's number of calls outstanding, or as many as the rings can hold.
    fn many(&self, expected: usize) -> Result<Side, Error> {
        let request = [Bytes::from(vec![0; self.plan.size])];
        let mut meter = Meter::start(self.plan);
        let mut sent = vec![0; self.plan.outstanding];
        // Free call ids.
        let mut free: Vec<u64> = (0..sent.len() as u64).collect();
        let mut events = Vec::with_capacity(sent.len());
        let mut now = clock::now();
        while !meter.is_over(now) {
            let mut batch = self.pair.batch().map_err(|gone| self.broken(gone))?;
            while let Some(&id) = free.last() {
                match batch.send(id, &request) {
                    Ok(_) => sent[id as usize] = now,
                    Err(SendError::Full) => break,
                    Err(error) => return Err(self.broken(error)),
                }
                free.pop();
            }
            batch.finish().map_err(|gone| self.broken(gone))?;
            self.receive(&mut events)?;
            now = clock::now();
            for event in events.drain(..) {
                let Some(id) = self.expect(event, expected)? else { continue };
                meter.latency(now - sent[id as usize]);
                meter.count(now, 1, self.plan.size as u64);
                free.push(id);
            }
        }
        Ok(meter.finish())
    }

    /// Waits for events and receives them.
    fn receive(&self, events: &mut Vec<PairEvent>) -> Result<(), Error> {
        self.pair.wait(self.plan.poll.spin_for(), None);
        self.pair
            .receive(ReceiveQuota::default(), events)
            .map(drop)
            .map_err(|gone| self.broken(gone))
    }

    /// Returns the id of the call that the event completes; `None` for an event of another kind.
    fn expect(&self, event: PairEvent, length: usize) -> Result<Option<u64>, Error> {
        let server = self.server;
        match event {
            PairEvent::Response { id, payload } if payload.len() == length => Ok(Some(id)),
            PairEvent::Response { payload, .. } => {
                let got = payload.len();
                let what = format!("{server} answered with {got} bytes in place of {length}");
                Err(Error::Peer(what))
            }
            PairEvent::Room => Ok(None),
            other => Err(Error::Peer(format!("{server} sent {other:?}"))),
        }
    }

    fn broken(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::endpoint(format!("call {}", self.server), error)
    }
}
