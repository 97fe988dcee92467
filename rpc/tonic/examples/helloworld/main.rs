//! The hello world of tonic, over apus. Differences from HTTP/2 are marked.
//!
//! `cargo run -p apus-tonic --example helloworld -- server` in one terminal, `… -- client` in
//! another. Without an argument, both run in one process.

#[path = "generated.rs"]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod helloworld;

// Over HTTP/2: use tonic::transport::Server;
use apus_tonic::Server;
use helloworld::greeter_client::GreeterClient;
use helloworld::greeter_server::{Greeter, GreeterServer};
use helloworld::{HelloReply, HelloRequest};
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

async fn serve(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let greeter = GreeterServer::new(MyGreeter);
    Server::builder().add_service(greeter).serve(address.parse()?).await?;
    Ok(())
}

async fn greet(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    // Over HTTP/2: let mut client = GreeterClient::connect(format!("http://{address}")).await?;
    let mut client = GreeterClient::new(apus_tonic::Channel::connect(address.parse()?).await?);
    let response = client.say_hello(HelloRequest { name: "apus".into() }).await?;
    println!("{}", response.into_inner().message);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = arguments.get(1).map_or("127.0.0.1:50051", String::as_str);
    match arguments.first().map(String::as_str) {
        Some("server") => serve(address).await,
        Some("client") => greet(address).await,
        Some(other) => Err(format!("{other}: server, client, or nothing for both").into()),
        None => tokio::select! {
            ended = serve(address) => ended,
            greeted = greet(address) => greeted,
        },
    }
}
