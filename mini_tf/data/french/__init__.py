"""French sentences with their English, from a small grammar of our own: data for a translation model.

The English of a sentence follows from the French alone, by rules that hold in the whole grammar:

    un, une         a (before a noun), one (a number: un degré)
    des, de         some; any after ne … pas and when asked; nothing after never, no longer, often
    tu, vous        you
    ce, cette, ces  this, these
    the present     is eating; but eats after often and never, and sees, wants, knows always
    passé composé   ate; has never eaten, has already eaten
    venir de        has just eaten
    il, elle        he, she; things are it

words.toml has the words, inflection.py their forms, spelling.py what happens where words meet, phrases.py and
verb_phrases.py the parts of sentences, patterns/ a function for each sentence pattern, and choices.py numbers them all.
"""

from mini_tf.checks import check_whole, generator


def french_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """A list of `count` different pairs (french, english), in random order.

    ("Je ne vois pas les chats noirs.", "I do not see the black cats.")

    The same count and seed give the same pairs everywhere. All patterns of the grammar give equally many, unless one
    has too few sentences. Raises UserError for a count below 1 or above the number of sentences in the grammar.
    """
    # Imported here because it builds the grammar, which takes a tenth of a second.
    from mini_tf.data.french.choices import draw, size
    from mini_tf.data.french.patterns import GRAMMAR

    check_whole(1, size(GRAMMAR), count=count)
    rng = generator(seed)
    pairs = draw(GRAMMAR, count, rng)
    return [pairs[i] for i in rng.permutation(count).tolist()]
