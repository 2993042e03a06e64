//! Keycloak's `CREDENTIAL` table and realm exports.

use serde::Deserialize;
use serde_json::Value;

use super::{ParseError, Stored, json::Part};
use crate::{
    argon2::{Algorithm, Params, Version},
    formats::{Argon2Hash, Digest, Recipe, limits, pbkdf2, text},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CredentialData {
    algorithm: String,
    hash_iterations: u32,
    additional_parameters: Option<Argon2Parameters>,
}

/// Each parameter is a list of one text.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Argon2Parameters {
    #[serde(rename = "type")]
    kind: Vec<String>,
    version: Vec<String>,
    memory: Vec<String>,
    parallelism: Vec<String>,
    hash_length: Vec<String>,
}

#[derive(Deserialize)]
struct SecretData {
    value: String,
    salt: String,
}

const CREDENTIAL: Part = Part("credentialData");
const SECRET: Part = Part("secretData");

/// Reads a password credential of Keycloak: `credentialData` and `secretData`, each the JSON text in the export. Knows
/// `pbkdf2` (which other programs call `pbkdf2-sha1`), `pbkdf2-sha256`, `pbkdf2-sha512` and `argon2`.
///
/// # Errors
/// [`ParseError`] when the JSON or the algorithm is something else, or a parameter is outside the limits.
pub fn keycloak(credential_data: &str, secret_data: &str) -> Result<Stored, ParseError> {
    imported(&CREDENTIAL.read(credential_data)?, &SECRET.read(secret_data)?)
}

/// Reads the fields of a credential. Programs that process an export write objects where it has their text.
pub(super) fn of_parts(credential_data: Value, secret_data: Value) -> Result<Stored, ParseError> {
    imported(&CREDENTIAL.read_value(credential_data)?, &SECRET.read_value(secret_data)?)
}

fn imported(data: &CredentialData, secret: &SecretData) -> Result<Stored, ParseError> {
    let (salt, value) = (text::padded(&secret.salt)?, text::padded(&secret.value)?);
    let digest = match data.algorithm.as_str() {
        "pbkdf2" | "pbkdf2-sha1" => Digest::Sha1,
        "pbkdf2-sha256" => Digest::Sha256,
        "pbkdf2-sha512" => Digest::Sha512,
        "argon2" => return argon2(data, salt, value),
        _ => {
            return Err(ParseError::Unsupported(
                "algorithm of Keycloak other than argon2 and pbkdf2 with SHA-1, 256 and 512",
            ));
        }
    };
    pbkdf2::recipe(digest, data.hash_iterations, salt, value).map(Stored)
}

fn argon2(data: &CredentialData, salt: Vec<u8>, tag: Vec<u8>) -> Result<Stored, ParseError> {
    let parameters = data.additional_parameters.as_ref().ok_or(NO_PARAMETERS)?;
    let algorithm = match one(&parameters.kind)? {
        "id" => Algorithm::Argon2id,
        "i" => Algorithm::Argon2i,
        "d" => Algorithm::Argon2d,
        _ => return Err(ParseError::Unsupported("unknown variant of Argon2")),
    };
    let version = match one(&parameters.version)? {
        "1.3" => Version::V19,
        "1.0" => Version::V16,
        _ => return Err(ParseError::Unsupported("version of Argon2 is neither 1.0 nor 1.3")),
    };
    let number = |values| one(values).and_then(text::number);
    let (memory, lanes) = (number(&parameters.memory)?, number(&parameters.parallelism)?);
    let cost = limits::argon2(memory, data.hash_iterations, lanes)?;
    if number(&parameters.hash_length)? as usize != tag.len() {
        return Err(ParseError::Malformed("hashLength is not the length of the hash"));
    }
    let params = Params { algorithm, version, cost, tag_bytes: tag.len() as u32 };
    Argon2Hash::new(params, None, salt, tag).map(Recipe::Argon2).map(Stored)
}

const NO_PARAMETERS: ParseError = ParseError::Malformed("credentialData of argon2 has no additionalParameters");

fn one(values: &[String]) -> Result<&str, ParseError> {
    match values {
        [value] => Ok(value),
        _ => Err(ParseError::Malformed("each parameter of Argon2 must have one value")),
    }
}
