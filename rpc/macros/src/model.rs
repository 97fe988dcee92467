//! The parsed service, input of the expansion.

use crate::options::ServiceOptions;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{
    Attribute, FnArg, GenericArgument, Ident, ItemTrait, Pat, Path, PathArguments, ReturnType,
    TraitItem, TraitItemFn, Type, parse_quote,
};

/// A service.
pub(crate) struct Service {
    pub(crate) item: ItemTrait,
    /// Name on the wire.
    pub(crate) name: String,
    pub(crate) codec: Path,
    pub(crate) krate: Path,
    pub(crate) methods: Vec<Method>,
}

/// A method.
pub(crate) struct Method {
    pub(crate) ident: Ident,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) idempotent: bool,
    /// Clients do not wait for the response.
    pub(crate) notify: bool,
    /// Names and types of the arguments except a stream.
    pub(crate) arguments: Vec<(Ident, Type)>,
    /// Name and type of the parts of the last argument, if it is a stream.
    pub(crate) stream: Option<(Ident, Type)>,
    pub(crate) result: Output,
    pub(crate) span: Span,
}

/// The result of a method.
pub(crate) struct Output {
    /// The value, or the parts of the stream.
    pub(crate) value: Type,
    pub(crate) is_stream: bool,
    pub(crate) error: Option<Type>,
}

impl Service {
    pub(crate) fn new(options: ServiceOptions, mut item: ItemTrait) -> syn::Result<Self> {
        let name = options.name.map_or_else(|| item.ident.to_string(), |name| name.value());
        let krate = options.krate.unwrap_or_else(|| parse_quote!(::apus_rpc));
        let codec = options.codec.unwrap_or_else(|| parse_quote!(#krate::Postcard));
        let mut methods = Vec::new();
        for part in &mut item.items {
            if let TraitItem::Fn(method) = part {
                methods.push(Method::new(method)?);
            }
        }
        Ok(Self { item, name, codec, krate, methods })
    }
}

impl Method {
    /// Removes the attribute's own markers from the method.
    fn new(method: &mut TraitItemFn) -> syn::Result<Self> {
        let mut take = |name: &str| {
            let before = method.attrs.len();
            method.attrs.retain(|attribute| !attribute.path().is_ident(name));
            method.attrs.len() < before
        };
        let (idempotent, notify) = (take("idempotent"), take("notify"));
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        let docs = method.attrs.iter().filter(is_doc).cloned().collect();
        let signature = &method.sig;
        let (mut arguments, mut stream) = (Vec::new(), None);
        for argument in signature.inputs.iter().skip(1) {
            let FnArg::Typed(argument) = argument else { continue };
            let Pat::Ident(pattern) = &*argument.pat else { continue };
            if stream.is_some() {
                let message = "the stream is the last argument: its parts follow the others";
                return Err(syn::Error::new(argument.span(), message));
            }
            match generic(&argument.ty, "Streaming").as_deref() {
                Some([parts]) => stream = Some((pattern.ident.clone(), parts.clone())),
                Some(_) => return Err(one_part(&argument.ty)),
                None => arguments.push((pattern.ident.clone(), (*argument.ty).clone())),
            }
        }
        let result = Output::new(&signature.output)?;
        let (ident, span) = (signature.ident.clone(), signature.ident.span());
        if notify && (stream.is_some() || !matches!(signature.output, ReturnType::Default)) {
            let message =
                "clients do not wait for a `#[notify]` method: it has no result and no stream";
            return Err(syn::Error::new(span, message));
        }
        Ok(Self { ident, docs, idempotent, notify, arguments, stream, result, span })
    }
}

impl Output {
    fn new(output: &ReturnType) -> syn::Result<Self> {
        let ReturnType::Type(_, result) = output else {
            return Ok(Self { value: parse_quote!(()), is_stream: false, error: None });
        };
        match generic(result, "Result").as_deref() {
            Some([value, error]) => Self::of(value, Some(error.clone())),
            Some(_) => {
                let message = "write both types of the `Result`: the error is sent to the client";
                Err(syn::Error::new(result.span(), message))
            }
            None => Self::of(result, None),
        }
    }

    fn of(value: &Type, error: Option<Type>) -> syn::Result<Self> {
        match generic(value, "Streaming").as_deref() {
            Some([parts]) => Ok(Self { value: parts.clone(), is_stream: true, error }),
            Some(_) => Err(one_part(value)),
            None => Ok(Self { value: value.clone(), is_stream: false, error }),
        }
    }
}

fn one_part(of: &Type) -> syn::Error {
    syn::Error::new(of.span(), "write the type of the parts: `Streaming<T>`")
}

/// Returns the type arguments of a type called `name`; `None` if it has another name.
fn generic(of: &Type, name: &str) -> Option<Vec<Type>> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last()?;
    if last.ident != name {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return Some(Vec::new()) };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of.clone()),
        _ => None,
    });
    Some(types.collect())
}
