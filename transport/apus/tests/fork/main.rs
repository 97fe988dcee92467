//! Endpoints in a child of a fork: every operation is refused, nothing that the parent shares is
//! touched, and the child's own endpoints work. A program without a harness, which decides itself
//! which threads there are when it forks.

mod daemon;
mod operations;
mod process;
mod sealed;
#[cfg(feature = "tokio")]
mod tasks;

use apus::{Endpoint, EndpointBuilder};
use std::sync::Arc;

fn main() {
    operations::every_operation_is_refused_in_a_child();
    for builder in builders() {
        operations::the_parents_calls_are_its_own(&builder);
        operations::a_child_of_a_server_answers_nothing(&builder);
        operations::a_child_inherits_no_descriptor(&builder);
    }
    daemon::a_daemon_binds_the_address_of_its_origin();
    daemon::the_end_of_a_server_is_noticed_although_its_child_lives();
    #[cfg(feature = "tokio")]
    tasks::futures_and_the_runtime_are_the_parents();
    println!("all checks passed");
}

/// Endpoints over shared memory and over UDP, sealed and clear, with each engine.
fn builders() -> Vec<EndpointBuilder> {
    let clear = Endpoint::builder();
    let dedicated = Endpoint::builder().engine(apus::Engine::Dedicated { cpu: None });
    vec![
        clear.clone(),
        clear.local(false),
        dedicated,
        sealed::builder(),
        Endpoint::builder().local(false).shards(2),
        Endpoint::builder().host_group(format!("fork/{}", std::process::id())),
    ]
}

/// Serves requests with their payload until the endpoint is shut down.
fn echo(server: &Arc<Endpoint>) -> std::thread::JoinHandle<()> {
    let server = server.clone();
    std::thread::spawn(move || {
        while let Ok(request) = server.recv_request() {
            let payload = request.payload().clone();
            request.reply(payload).unwrap();
        }
    })
}
