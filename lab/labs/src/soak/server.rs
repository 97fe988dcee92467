//! A server: checks each request, records its execution, and replies.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use apus::Closed;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::heap;
use super::ledger::Ledger;
use super::message::Call;
use super::signals;
use super::transport::Transport;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Control;

/// The instructions for a server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerTask {
    pub(super) transport: Transport,
    pub(super) ledger: PathBuf,
    pub(super) life: u32,
    /// Address to listen on.
    pub(super) at: Ipv4Addr,
    /// Port to listen on; 0 for any, in the first life.
    pub(super) port: u16,
    pub(super) traces: Option<PathBuf>,
}

/// Serves until it is stopped.
pub(super) fn serve(task: &ServerTask, control: &mut Control) -> Result<Value, Error> {
    control.end_with_parent()?;
    signals::ignore_interrupts()?;
    let doing = || "write the ledger".to_owned();
    let ledger = Ledger::at(&task.ledger);
    let mut pages = ledger.server(task.life).doing(doing)?;
    heap::record(&ledger, task.life).doing(|| "record the heap".to_owned())?;
    let endpoint = task.transport.open(task.at, task.port, true, task.traces.as_deref())?;
    let shut_down = endpoint.clone();
    control.stop().wake_with(move || shut_down.shutdown());
    control.ready(endpoint.local_addr())?;
    loop {
        let request = match endpoint.recv_request() {
            Ok(request) => request,
            Err(Closed::ShutDown) => return Ok(json!(null)),
            Err(error) => return Err(Error::endpoint("receive requests".to_owned(), error)),
        };
        let payload = request.payload();
        let reply = match Call::of(payload) {
            Some(call) => {
                let good = call.is_request(payload);
                pages.execute(call.client, call.number, good).doing(doing)?;
                call.reply()
            }
            None => {
                pages.malformed().doing(doing)?;
                "no call".into()
            }
        };
        // The client may have ended.
        let _ = request.reply(reply);
    }
}
