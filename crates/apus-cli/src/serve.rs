//! How is an echo service run?

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;
use std::{io, iter};

use apus::{Closed, Endpoint, Poll};
use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::address::Address;
use crate::failure::Failure;
use crate::output;
use crate::path::Path;

/// Run an echo service: every request is answered with its own bytes
///
/// Prints `listening on ADDR` once it can be called, and serves until it is interrupted (SIGINT, which
/// is Ctrl-C, or SIGTERM). Replies under way then have a second to arrive; a second signal ends it at
/// once. What was served is said on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus serve 127.0.0.1:4000
  apus serve 127.0.0.1:0 --receivers 2
  apus serve [::]:4000 --poll spin")]
pub(crate) struct Arguments {
    /// Where to listen, HOST:PORT; port 0 takes any free one, `[::]:4000` all addresses of the host,
    /// IPv4 and IPv6
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:4000", value_parser = Address::to_serve)]
    address: Address,
    /// Threads that receive requests and answer them: 1 to 1024
    #[arg(long, value_name = "THREADS", default_value_t = 1, value_parser = receivers,
          allow_negative_numbers = true)]
    receivers: usize,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and
    /// then sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE", default_value_t = Poll::default())]
    poll: Poll,
    /// Which way messages go to peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    path: Path,
    /// Print JSON, one object per line: `listening` at the beginning, what was served at the end
    #[arg(long)]
    json: bool,
}

/// How long replies may take to arrive once the service is to end. Ours: a reply whose client is there
/// arrives in milliseconds, and who presses Ctrl-C does not want to wait.
const LAST_REPLIES: Duration = Duration::from_secs(1);

fn receivers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "there are 1 to 1024 receiving threads; try 2".to_owned())
}

/// What a receiving thread has done.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    messages: u64,
    bytes: u64,
    /// Replies that nobody waited for any more.
    unwanted: u64,
}

/// Why the service ends.
enum End {
    Signal,
    Broken(Closed),
}

/// Serves until somebody interrupts it.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (tell, told) = channel();
    watch_signals(tell.clone()).map_err(|error| Failure::of("catch signals", &error))?;
    let settings = Endpoint::builder().poll(arguments.poll).local(arguments.path.may_be_local());
    let endpoint = settings.bind(arguments.address.as_str()).map_err(|error| {
        Failure::Work(format!("{error}\n`apus serve 127.0.0.1:0` listens on any free port."))
    })?;
    let (end, served) = thread::scope(|scope| {
        let receivers = start(arguments.receivers, &endpoint, &tell, scope);
        let ready = say_where(&endpoint, arguments.json);
        let end = ready.map(|()| told.recv().expect("this thread holds a sender"));
        if let Ok(End::Signal) = end {
            endpoint.drain(LAST_REPLIES);
        }
        endpoint.shutdown();
        (end, total(receivers))
    });
    say_what(served, arguments.json)?;
    match end? {
        End::Signal => Ok(()),
        End::Broken(why) => Err(Failure::Work(why.to_string())),
    }
}

/// Tells about the first signal; the second one ends the process at once.
fn watch_signals(tell: Sender<End>) -> io::Result<()> {
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal must not find it set.
        signal_hook::flag::register_conditional_shutdown(signal, 1, seen.clone())?;
        signal_hook::flag::register(signal, seen.clone())?;
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            // Nobody listens if the service is ending anyway.
            let _ = tell.send(End::Signal);
        }
    })?;
    Ok(())
}

type Receiver<'scope> = ScopedJoinHandle<'scope, Served>;

/// Starts threads that answer requests until the endpoint is closed.
fn start<'scope, 'env>(
    count: usize,
    endpoint: &'env Endpoint,
    tell: &'env Sender<End>,
    scope: &'scope Scope<'scope, 'env>,
) -> Vec<Receiver<'scope>> {
    let receiver = || scope.spawn(|| receive(endpoint, tell));
    iter::repeat_with(receiver).take(count).collect()
}

fn receive(endpoint: &Endpoint, tell: &Sender<End>) -> Served {
    let mut served = Served::default();
    loop {
        let request = match endpoint.recv_request() {
            Ok(request) => request,
            Err(Closed::ShutDown) => return served,
            Err(why) => {
                // Another thread may have told about it, and the service ended.
                let _ = tell.send(End::Broken(why));
                return served;
            }
        };
        let payload = request.payload().clone();
        served.messages += 1;
        served.bytes += payload.len() as u64;
        served.unwanted += u64::from(request.reply(payload).is_err());
    }
}

fn total(receivers: Vec<Receiver<'_>>) -> Served {
    let served = receivers.into_iter().map(|thread| thread.join().expect("panics are reported"));
    served.fold(Served::default(), |sum, one| Served {
        messages: sum.messages + one.messages,
        bytes: sum.bytes + one.bytes,
        unwanted: sum.unwanted + one.unwanted,
    })
}

fn say_where(endpoint: &Endpoint, json: bool) -> Result<(), Failure> {
    let address = endpoint.local_addr();
    if json {
        output::line(&json!({ "listening": address }).to_string())
    } else {
        output::line(&format!("listening on {address}"))
    }
}

fn say_what(served: Served, json: bool) -> Result<(), Failure> {
    let Served { messages, bytes, unwanted } = served;
    if json {
        let object = json!({ "messages": messages, "bytes": bytes, "unwanted": unwanted });
        return output::line(&object.to_string());
    }
    let mut text = format!("served {messages} messages, {bytes} bytes");
    if unwanted > 0 {
        text += &format!("; {unwanted} of the clients did not wait for the reply");
    }
    output::note(&text);
    Ok(())
}
