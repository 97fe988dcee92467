#[apus_macros::service]
trait Store {
    async fn new(&self) -> String;
}

fn main() {}
