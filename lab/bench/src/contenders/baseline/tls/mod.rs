//! Messages on a TLS 1.3 connection over TCP, the usual solution for encrypted messages.
//!
//! Plain rustls, without a runtime: the thread of each side spins or sleeps on its socket like the
//! threads of `tcp`. tokio-rustls is the same library behind a runtime, so a benchmark would
//! measure the runtime's sleeps and wake-ups instead of the encryption; this row is at least as
//! fast. AES-128-GCM, like apus, on the same cryptographic library, X25519, no client certificate.
//! The handshake precedes the measurement.
//!
//! Messages are framed as in `stream`. Ready messages leave in one `send`, in records of up to 16
//! KiB.

mod session;

use std::net::{Ipv4Addr, SocketAddr};

use self::session::Session;
use super::stream::SendMode;
use super::stream::frames::{Frames, frame};
use super::stream::server::accept;
use super::tcp::socket::{Settings, listen_at, open};
use crate::contenders::contender::Contender;
use crate::contenders::keys::ThrowAwayKeys;
use apus_measure::meter::Meter;
use apus_measure::plan::{Plan, Replies, Side};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::Control;

/// Length-prefixed messages on one TLS connection.
#[derive(Clone, Copy, Debug)]
pub struct Tls {
    /// Number of messages per `send` call.
    pub sends: SendMode,
    /// Replies of the server.
    pub replies: Replies,
}

impl Contender for Tls {
    fn name(&self) -> &'static str {
        "tls-tcp"
    }

    fn settings(&self) -> String {
        format!(
            "one connection, {}, {}, TLS 1.3 (rustls), AES-128-GCM",
            Settings::LOOPBACK,
            self.sends.settings()
        )
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn is_encrypted(&self) -> bool {
        true
    }

    fn exclusion(&self, plan: &Plan) -> Option<String> {
        plan.keys.is_none().then(|| "it takes part with --sealed".to_owned())
    }

    fn serve(&self, plan: &Plan, control: &mut Control) -> Result<Side, Error> {
        let Some(folder) = &plan.keys else { return Ok(Side::default()) };
        let keys = &ThrowAwayKeys::in_folder(folder);
        let (listener, address) = listen_at(Ipv4Addr::LOCALHOST.into(), &Settings::LOOPBACK)?;
        control.ready(address)?;
        let Some(stream) = accept(&listener, control.stop())? else { return Ok(Side::default()) };
        let mut session = Session::accept(stream, keys, plan.poll, control.stop())?;
        let short = frame(&Replies::SHORT);
        let mut meter = None;
        while let Some(frames) = session.receive()? {
            if frames.count == 0 {
                continue;
            }
            let (count, payload) = (frames.count, frames.payload());
            let replies = match self.replies {
                Replies::Echo => frames.bytes.to_vec(),
                Replies::Short => short.repeat(count),
            };
            if self.replies == Replies::Short {
                let meter = meter.get_or_insert_with(|| Meter::start(plan));
                meter.count(clock::now(), count as u64, payload as u64);
            }
            session.send(&replies)?;
        }
        Ok(meter.map_or_else(Side::default, Meter::finish))
    }

    fn drive(&self, plan: &Plan, server: SocketAddr, control: &mut Control) -> Result<Side, Error> {
        let Some(folder) = &plan.keys else { return Ok(Side::default()) };
        let keys = &ThrowAwayKeys::in_folder(folder);
        let stream = open(server, &Settings::LOOPBACK)?;
        let mut session = Session::connect(stream, keys, plan.poll, control.stop())?;
        let one = frame(&vec![0; plan.size]);
        let mut meter = Meter::start(plan);
        let mut sent = std::collections::VecDeque::with_capacity(plan.outstanding);
        loop {
            let room = plan.outstanding - sent.len();
            if room > 0 {
                let now = clock::now();
                sent.extend(std::iter::repeat_n(now, room));
                session.send(&one.repeat(room))?;
            }
            let Some(Frames { count, .. }) = session.receive()? else { break };
            let now = clock::now();
            for began in sent.drain(..count) {
                meter.latency(now - began);
            }
            if count > 0 {
                meter.count(now, count as u64, (count * plan.size) as u64);
            }
            if meter.is_over(now) {
                break;
            }
        }
        Ok(meter.finish())
    }
}
