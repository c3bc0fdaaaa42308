"""What names say: which may be the gradient of which, and what is learned."""

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

BEFORE = "d", "dl", "dld", "dloss", "dlossd", "g", "grad", "gradient", "delta", "del"        # of a gradient's name
BEHIND = "d", "g", "grad", "grads", "gradient", "bar", "dot"
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")            # of d_loss_d_x, weightGradient
MANGLED = re.compile(r"^_[^\W_]\w*?__(?=[^\W_])")        # _Layer__weights, of self.__weights
SAY_GRADIENT = {
    "d", "g", "grad", "grads", "gradient", "gradients", "gradienten", "bar", "adj", "adjoint", "ct", "cotangent",
    "nabla", "delta", "deriv", "derivative", "derivada", "derivadas", "derivee", "derivees", "dérivée", "dérivées",
    "ableitung", "ableitungen", "jac", "jacobian", "wrt",
}  # fmt: skip
SAID_WITH_THEM = {"of", "by", "l", "loss", "cost", "j", "e", "error"}             # d_loss_d_x, grad_of_x
# The name of what keeps gradients: grads, dparams, d_enc, dEnc, but not decoder or dense1
GRADIENTS = re.compile(r"(?i:grad|deriv|dériv|ableit|nabla)|^[dg]$|^d_|^d[A-Z]|"
                       r"^d(p\w*|weights?|theta|model|layers?|net|w|vars?)\d*$")  # fmt: skip
NOT_GRADIENTS = r"ata|ict|ims?(?![a-z])|imension|en(?![a-z])|enom|ensit|ist|epth|ecay"       # data, but dimgs is one
NAMED_AS_GRADIENT = re.compile(rf"d(?!{NOT_GRADIENTS})|g$|grad|up")
GIVEN_BACK = re.compile(r"^(ct|err|fehler|seed|adj|delta|amont|cotan|nabla|bar)|error|fehler|bar(all)?$|grad|adjoint")
# What an array may be called that is learned, and neither data nor a mask: b2, gamma
LEARNED = re.compile(r"([WUb]\w{0,2}|w\w?|gamma|beta|theta|weights?|bias(es)?|kernel|E|emb\w*|scale|shift|log_\w+)\d*$")
# What an object keeps that is not learned
GIVEN = re.compile(r"(eps(ilon)?|noise|targets?|labels?|[XY]|[xy](_\w+)?|inputs?|features|samples|observations)\d*$")


@lru_cache(10_000)
def is_gradient_name(said: str | int, name: str | int) -> bool:
    """True if `said` names the gradient of `name`: dW, dL/dW, W_grad, gW, grad_of_W, ableitung_W, W itself …"""
    own = _words(name)
    if own and _words(said, without_those_of_gradients=True) == own:
        return True
    said, name = plain(said), plain(name)
    without = {said.removeprefix(word) for word in BEFORE} | {said.removesuffix(word) for word in BEHIND}
    return name in without or said == name


def _words(name, without_those_of_gradients=False):
    """"mtenw" of m_tenW and, without the words that say that it is a gradient, of m_tenGradW"""
    words = [word.lower() for word in WORDS.findall(unmangled(name))]
    if without_those_of_gradients and SAY_GRADIENT & {*words}:
        words = [word for word in words if word not in SAY_GRADIENT | SAID_WITH_THEM]
    joined = "".join(words)
    if joined.endswith("ses"):                           # biases, bias_grads
        return joined.removesuffix("es")
    return joined if len(joined) <= 3 or joined.endswith(("ss", "as", "us", "is")) else joined.removesuffix("s")


def gradient_of(name: str | int, named: dict[str | int, Any]) -> Any:
    """What is named as the gradient of `name` among {name: gradient}, or None. Of dB and db, b's is db.

    W's is dW, if there is one, and not Wg, which may be the weight of a gate.
    """
    def unlikely(said):
        return said != name, not in_this_case(said, name), may_be_a_weight(said, name)

    said = min((one for one in named if is_gradient_name(one, name)), key=unlikely, default=None)
    return None if said is None else named[said]


def unclaimed(named: Collection[str], tensors: Collection[str]) -> list[str]:
    """The names of gradients of weights, dW or Wz_0, of which nobody can tell whose they are; without dz, say"""
    found = [said for said in named if not any(is_gradient_name(said, name) for name in tensors)]
    bare = {said: [said, *(said.removeprefix(word).removeprefix("_") for word in BEFORE)] for said in found}
    return [said for said, names in bare.items() if any(map(LEARNED.match, names))]


def may_be_a_weight(said: str | int, name: str | int) -> bool:
    """True if `said` is `name` with a letter more that may mean something else: Wg, of a gate; Wd, of a decoder"""
    said, name = plain(said), plain(name)
    return len(said) == len(name) + 1 and not said.startswith("d")


@lru_cache(10_000)
def in_this_case(said: str | int, name: str | int) -> bool:
    """True if the name of a gradient has the name itself, with its capitals: dB has B, and not b."""
    said, name = (str(one).replace("_", "") for one in (said, name))
    return said.startswith(name) or said.endswith(name)


def unmangled(name: str | int) -> str:
    """__weights of _Layer__weights, which is what Python makes of self.__weights"""
    return MANGLED.sub("__", str(name))


@lru_cache(10_000)
def plain(name: str | int) -> str:
    return re.sub(r"[\W_]", "", unmangled(name)).lower()


def is_upstream(name: str) -> bool:
    """True for what the gradient that a backward is given may be called: dy, d_out, grad, g, upstream."""
    return NAMED_AS_GRADIENT.match(name) is not None


def says_gradient(said: str | int) -> bool:
    """True for d_loss_d_x, wrt_means and gradW, by a word in it"""
    return bool(SAY_GRADIENT & {word.lower() for word in WORDS.findall(str(said))})


def keeps_gradients(said: str | int) -> bool:
    """True for the name of a dict, a list or an object that keeps gradients"""
    return GRADIENTS.search(str(said)) is not None


def may_be_given(name: str) -> bool:
    """`is_upstream`, or another name for what a backward is given: error, ct, seed, ybar"""
    return is_upstream(name) or GIVEN_BACK.search(plain(name)) is not None
