//! The witness: plain UDP between the hosts of a campaign, which shows when the network carries
//! datagrams again.
//!
//! A kernel may hold the first datagram after *link up* for a second, while it resolves the address
//! of its neighbour again. No transport can recover before that.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::ledger::Ledger;
use super::signals;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Control;

/// Time between two datagrams: short compared with a second, and a negligible load compared with
/// the calls of the clients.
const INTERVAL: Duration = Duration::from_millis(5);

/// The instructions for an end of the witness.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WitnessTask {
    /// Echoes datagrams.
    Echo,
    /// Sends datagrams to `echo`, and records when one returns.
    Probe { ledger: PathBuf, echo: SocketAddr },
}

/// Runs an end of the witness until it is stopped.
pub(super) fn run(task: &WitnessTask, control: &mut Control) -> Result<(), Error> {
    control.end_with_parent()?;
    signals::ignore_interrupts()?;
    let open = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let address = socket.local_addr()?;
        Ok::<_, io::Error>((socket, address))
    };
    let (socket, address) = open().doing(|| "open a UDP socket".to_owned())?;
    control.ready(address)?;
    match task {
        WitnessTask::Echo => echo(&socket, control),
        WitnessTask::Probe { ledger, echo } => probe(&socket, *echo, &Ledger::at(ledger), control),
    }
}

fn echo(socket: &UdpSocket, control: &Control) -> Result<(), Error> {
    let doing = || "echo datagrams".to_owned();
    socket.set_read_timeout(Some(INTERVAL)).doing(doing)?;
    let mut datagram = [0; 8];
    while !control.stop().is_asked() {
        if let Some((length, from)) = received(socket.recv_from(&mut datagram)).doing(doing)? {
            // The network may be down.
            let _ = socket.send_to(&datagram[..length], from);
        }
    }
    Ok(())
}

fn probe(
    socket: &UdpSocket,
    echo: SocketAddr,
    ledger: &Ledger,
    control: &Control,
) -> Result<(), Error> {
    let doing = || "record what plain UDP carries".to_owned();
    let mut passed = ledger.witness().doing(doing)?;
    let mut datagram = [0; 8];
    while !control.stop().is_asked() {
        // The network may be down.
        let _ = socket.send_to(&datagram, echo);
        let sent = Instant::now();
        loop {
            let left = INTERVAL.saturating_sub(sent.elapsed());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left)).doing(doing)?;
            if received(socket.recv_from(&mut datagram)).doing(doing)?.is_some() {
                passed.add(clock::now()).doing(doing)?;
            }
        }
    }
    Ok(())
}

/// Returns the received datagram; `None` if there is none yet, or the network is down.
fn received(result: io::Result<(usize, SocketAddr)>) -> io::Result<Option<(usize, SocketAddr)>> {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable, TimedOut,
        WouldBlock,
    };
    match result {
        Ok(received) => Ok(Some(received)),
        Err(error) => match error.kind() {
            WouldBlock | TimedOut | Interrupted | ConnectionRefused | HostUnreachable
            | NetworkDown | NetworkUnreachable => Ok(None),
            _ => Err(error),
        },
    }
}
