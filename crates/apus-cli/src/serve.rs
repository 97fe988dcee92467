//! How is an echo service run?

use std::iter;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use apus::{Builder, Closed, Endpoint, Poll, Settings};
use clap::Args;
use serde_json::json;

use crate::address::Address;
use crate::configuration::Configuration;
use crate::driver::{Driver, not_opened};
use crate::failure::Failure;
use crate::output;
use crate::path::Path;
use crate::signals;
use crate::tracing::Tracing;

/// Run an echo service: every request is answered with its own bytes
///
/// Prints `listening on ADDR` once it can be called, and serves until it is interrupted (SIGINT, which
/// is Ctrl-C, or SIGTERM). Replies under way then have a second to arrive; a second signal ends it at
/// once. What was served is said on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus serve 127.0.0.1:4000
  apus serve 127.0.0.1:0 --receivers 2
  apus serve 127.0.0.1:0 --trace all --trace-file server.tt
  apus serve [::]:4000 --poll spin
  apus serve 10.0.0.1:4000 --driver raw")]
pub(crate) struct Arguments {
    /// Where to listen, HOST:PORT; port 0 takes any free one, `[::]:4000` all addresses of the host,
    /// IPv4 and IPv6 (over raw IP: IPv6, and `0.0.0.0:4000` IPv4)
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:4000", value_parser = Address::to_serve)]
    address: Address,
    /// Threads that receive requests and answer them: 1 to 1024 [default: 1, or what --config says]
    #[arg(long, value_name = "THREADS", value_parser = receivers, allow_negative_numbers = true)]
    receivers: Option<usize>,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and
    /// then sleep (`hybrid` alone: 50) [default: hybrid, or what --config says]
    #[arg(long, value_name = "MODE")]
    poll: Option<Poll>,
    #[command(flatten)]
    configuration: Configuration,
    /// What carries packets
    #[arg(long, value_name = "DRIVER", value_enum, default_value_t = Driver::Udp)]
    driver: Driver,
    /// Which way messages go to peers on this host
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    path: Path,
    #[command(flatten)]
    tracing: Tracing,
    /// Print JSON, one object per line: `listening` at the beginning, what was served at the end
    #[arg(long)]
    json: bool,
}

/// How long replies may take to arrive once the service is to end. Ours: a reply whose client is there
/// arrives in milliseconds, and who presses Ctrl-C does not want to wait.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Threads at most.
const MOST: usize = 1024;

/// What the file says, and the arguments in its place.
fn builder(settings: &Settings, arguments: &Arguments) -> Builder {
    let builder = arguments.path.apply(settings.builder());
    match arguments.poll {
        Some(poll) => builder.poll(poll),
        None => builder,
    }
}

fn receivers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
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
    arguments.tracing.begin()?;
    let teller = tell.clone();
    // Nobody listens if the service is ending anyway.
    signals::at_first(move || drop(teller.send(End::Signal)))
        .map_err(|error| Failure::of("catch signals", &error))?;
    let settings = arguments.configuration.read()?;
    let receivers = arguments.receivers.or(settings.receivers).unwrap_or(1).clamp(1, MOST);
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let builder = arguments.driver.build(builder(&settings, arguments), any);
    let endpoint = builder.bind(arguments.address.as_str()).map_err(|error| {
        not_opened(&error, "`apus serve 127.0.0.1:0` listens on any free port.")
    })?;
    let (end, served) = thread::scope(|scope| {
        let receivers = start(receivers, &endpoint, &tell, scope);
        let ready = say_where(&endpoint, arguments.json);
        let end = ready.map(|()| told.recv().expect("this thread holds a sender"));
        if let Ok(End::Signal) = end {
            endpoint.drain(LAST_REPLIES);
        }
        endpoint.shutdown();
        (end, total(receivers))
    });
    say_what(served, arguments.json)?;
    arguments.tracing.end()?;
    match end? {
        End::Signal => Ok(()),
        End::Broken(why) => Err(Failure::Work(why.to_string())),
    }
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
