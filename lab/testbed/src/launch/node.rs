//! Any rank other than 0.
//!
//! It connects to rank 0, waits for a task, starts an agent for it, and relays all further lines to
//! that agent. It reconnects immediately, since another task may be due meanwhile, until rank 0
//! dismisses it. Each task has a separate connection.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{Assignment, HELLO_TIMEOUT, Hello, HelloReply, MAX_HELLO, prepare};
use super::ranks::Ranks;
use apus_measure::error::{Doing, Error};
use apus_measure::process::{MAX_LINE, read_line, relay, write_line};

/// How long a rank that has served before tries to reach rank 0. Chosen by us: rank 0 listens
/// unless its network is down.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of one connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// A rank that rank 0 has accepted.
#[derive(Debug)]
pub struct Node {
    ranks: Ranks,
    program: OsString,
    connection: BufReader<TcpStream>,
}

impl Node {
    /// Connects to rank 0 and introduces this rank.
    pub(super) fn join(ranks: Ranks, program: OsString) -> Result<Self, Error> {
        let connection = connect(&ranks, ranks.timeout, false)?;
        Ok(Self { ranks, program, connection })
    }

    /// Serves tasks from rank 0 until dismissed.
    ///
    /// # Errors
    ///
    /// Rank 0 has ended. Errors of agents are reported to rank 0 instead.
    pub fn serve(self) -> Result<(), Error> {
        let Self { ranks, program, mut connection } = self;
        // Tasks end with their connections, and these do not outlive rank 0.
        thread::scope(|scope| {
            loop {
                // A broken connection counts as an end.
                match read_line(&mut connection, MAX_LINE).unwrap_or_default() {
                    Some(Assignment::Task(task)) => {
                        let program = &program;
                        scope.spawn(move || relay(program, task, connection));
                    }
                    Some(Assignment::Dismiss) => return Ok(()),
                    None => {
                        let said = "ended without dismissing the other ranks".to_owned();
                        return Err(Error::Agent { agent: rank_0(&ranks), said });
                    }
                }
                connection = connect(&ranks, RECONNECT_TIMEOUT, true)?;
            }
        })
    }
}

fn rank_0(ranks: &Ranks) -> String {
    format!("rank 0 at {}", ranks.place())
}

/// Connects to rank 0 and performs the handshake. If rank 0 was reached before, a refused
/// connection means that it has ended.
fn connect(ranks: &Ranks, timeout: Duration, again: bool) -> Result<BufReader<TcpStream>, Error> {
    let until = Instant::now() + timeout;
    loop {
        let problem = match attempt(ranks) {
            Ok((connection, HelloReply::Welcome)) => {
                let unlimited = connection.get_ref().set_read_timeout(None);
                unlimited.doing(|| format!("wait for {}", rank_0(ranks)))?;
                return Ok(connection);
            }
            Ok((_, HelloReply::Refused(why))) => {
                let said = format!("refused this rank {}: {why}", ranks.rank);
                return Err(Error::Agent { agent: rank_0(ranks), said });
            }
            Err(problem) => problem,
        };
        let gone = again && problem.kind() == io::ErrorKind::ConnectionRefused;
        if gone || Instant::now() >= until {
            let said = format!(
                "does not answer rank {} ({problem}); does it run, and do names and firewalls let \
                 the ranks through? APUS_COORDINATOR=HOST:PORT sets its address",
                ranks.rank
            );
            return Err(Error::Agent { agent: rank_0(ranks), said });
        }
        thread::sleep(RETRY_INTERVAL);
    }
}

/// Tries all addresses of rank 0 once.
fn attempt(ranks: &Ranks) -> io::Result<(BufReader<TcpStream>, HelloReply)> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    for address in (ranks.coordinator.as_str(), ranks.port).to_socket_addrs()? {
        match introduce(ranks, address) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn introduce(ranks: &Ranks, address: SocketAddr) -> io::Result<(BufReader<TcpStream>, HelloReply)> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    prepare(&stream).map_err(io::Error::other)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        token: ranks.token.clone(),
        rank: ranks.rank,
        size: ranks.size,
        bind: match ranks.bind {
            Some(bind) => bind,
            None => local(&stream)?,
        },
        host: host_name(),
    };
    stream.set_read_timeout(Some(HELLO_TIMEOUT))?;
    write_line(&mut stream, &hello)?;
    let mut lines = BufReader::new(stream);
    match read_line(&mut lines, MAX_HELLO as u64)? {
        Some(answer) => Ok((lines, answer)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Returns the local address of a connection.
pub(super) fn local(stream: &TcpStream) -> io::Result<IpAddr> {
    Ok(stream.local_addr()?.ip().to_canonical())
}

/// Returns the name of this host, for messages.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
