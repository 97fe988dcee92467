//! The hello world of tonic, over apus. Differences from HTTP/2 are marked.
//!
//! `cargo run -p apus-tonic --example helloworld -- server` in one terminal, `… -- client` in
//! another. Without an argument, both run in one process. README.md has a walk through it.

#[path = "generated.rs"]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod helloworld;

// Over HTTP/2: use tonic::transport::Server;
use apus_tonic::Server;
use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use tonic::{Request, Response, Status};

#[derive(Default)]
struct MyGreeter;

#[tonic::async_trait]
impl Greeter for MyGreeter {
    async fn say_hello(
        &self,
        request: Request<HelloRequest>,
    ) -> Result<Response<HelloReply>, Status> {
        let message = format!("Hello {}!", request.into_inner().name);
        Ok(Response::new(HelloReply { message }))
    }
}

// [sample server]
async fn serve(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let greeter = GreeterServer::new(MyGreeter);
    Server::builder().add_service(greeter).serve(address).await?;
    Ok(())
}
// [end]

// [sample client]
async fn greet(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    // Over HTTP/2: let mut client = GreeterClient::connect(format!("http://{address}")).await?;
    let mut client = GreeterClient::new(apus_tonic::Channel::connect(address).await?);
    let response = client.say_hello(HelloRequest { name: "apus".into() }).await?;
    println!("{}", response.into_inner().message);
    Ok(())
}
// [end]

/// Runs the role that the first argument names, at the address of the second one.
///
/// # Errors
///
/// The address cannot be resolved or bound, or the call failed.
pub async fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let address = arguments.get(1).map_or("127.0.0.1:50051", String::as_str);
    let mut found =
        tokio::net::lookup_host(address).await.map_err(|error| format!("{address}: {error}"))?;
    let address = found.next().ok_or("the name has no address")?;
    match arguments.first().map(String::as_str) {
        Some("server") => serve(address).await,
        Some("client") => greet(address).await,
        Some("both") | None => tokio::select! {
            ended = serve(address) => ended,
            greeted = greet(address) => greeted,
        },
        Some(other) => Err(format!("{other:?} is none of server, client, both").into()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
