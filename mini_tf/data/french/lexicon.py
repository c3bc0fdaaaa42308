"""The words of the grammar, as tables. One line is one word; the columns are named above each table.

The French of a word and its kind decide its English: no French word here has two English ones that a sentence
could not tell apart. No noun is spelled alike in singular and plural, because "pas de tapis" would then have two
translations; only "fils" is, which never follows "de".
"""

from typing import NamedTuple

__all__ = [
    "ADJECTIVES", "BORN", "CITIES", "COUNTRIES", "DOING_ALONE", "FEELINGS", "FUTURE_TIMES", "HAVE", "KNOW", "MASSES",
    "MONTHS", "MOVES", "NAMES", "NEVER_OLD", "NOUNS", "OFTEN", "PAST_TIMES", "PREPOSITIONS", "PRONOUNS", "QUALITIES",
    "REFLEXIVES", "SITES", "SIZES", "SPEAKERS", "STATES", "TRAITS", "VERBS", "WEATHER", "Adjective", "Noun", "Pair",
    "Phrase", "Place", "Scene", "Verb",
]  # fmt: skip


class Noun(NamedTuple):
    fr: str
    fr_plural: str
    gender: str                                          # "m" or "f"
    en: str
    en_plural: str


class Adjective(NamedTuple):
    m: str
    f: str
    m_plural: str
    f_plural: str
    en: str
    en_more: str = ""                                    # the comparative: "taller"


class Verb(NamedTuple):
    infinitive: str
    present: tuple                                       # je, tu, il, nous, vous, ils
    participle: str
    base: str
    third: str
    past: str
    done: str
    ing: str
    state: bool                                          # "I see", never "I am seeing"


class Phrase(NamedTuple):
    """A part of a sentence that can be a subject or an object, in both languages."""

    fr: str
    en: str
    person: int                                          # 0 je, 1 tu, 2 il, 3 nous, 4 vous, 5 ils
    gender: str
    fr_not: str = ""                                     # after ne … pas: "de pommes" for "des pommes"
    en_not: str = ""                                     # "any apples" for "some apples"
    en_bare: str = ""                                    # "apples", after never and often


class Place(NamedTuple):
    name: str                                            # le Canada
    there: str                                           # au Canada
    en: str
    at: str = "in"


Pair = tuple[str, str]                                   # the same in French and in English
Scene = tuple[Phrase, Verb, Phrase]                      # subject, verb, object


def _rows(table, mark="|"):
    return [[cell.strip() for cell in line.split(mark)] for line in table.strip().splitlines()]


def _nouns(table):
    return [Noun(*row) for row in _rows(table, ",")]


def _masses(table):
    return [Noun(fr, fr, gender, en, en) for fr, gender, en in _rows(table, ",")]


def _adjectives(table):
    return [Adjective(*row) for row in _rows(table, ",")]


# French, plural, gender, English, plural
NOUNS = {
    "person": _nouns("""
        médecin, médecins, m, doctor, doctors
        professeur, professeurs, m, teacher, teachers
        étudiante, étudiantes, f, student, students
        infirmière, infirmières, f, nurse, nurses
        avocat, avocats, m, lawyer, lawyers
        boulangère, boulangères, f, baker, bakers
        cuisinier, cuisiniers, m, cook, cooks
        fermier, fermiers, m, farmer, farmers
        facteur, facteurs, m, postman, postmen
        chanteuse, chanteuses, f, singer, singers
        actrice, actrices, f, actress, actresses
        architecte, architectes, m, architect, architects
        musicien, musiciens, m, musician, musicians
        reine, reines, f, queen, queens
        roi, rois, m, king, kings
        homme, hommes, m, man, men
        femme, femmes, f, woman, women
        garçon, garçons, m, boy, boys
        fille, filles, f, girl, girls
        enfant, enfants, m, child, children
        touriste, touristes, m, tourist, tourists
        héroïne, héroïnes, f, heroine, heroines
        pompier, pompiers, m, firefighter, firefighters
    """),
    "kin": _nouns("""
        frère, frères, m, brother, brothers
        sœur, sœurs, f, sister, sisters
        oncle, oncles, m, uncle, uncles
        tante, tantes, f, aunt, aunts
        cousine, cousines, f, cousin, cousins
        fils, fils, m, son, sons
        voisin, voisins, m, neighbour, neighbours
        ami, amis, m, friend, friends
        amie, amies, f, friend, friends
        collègue, collègues, m, colleague, colleagues
    """),
    "pet": _nouns("""
        chat, chats, m, cat, cats
        chien, chiens, m, dog, dogs
        cheval, chevaux, m, horse, horses
        lapin, lapins, m, rabbit, rabbits
        vache, vaches, f, cow, cows
        mouton, moutons, m, sheep, sheep
        âne, ânes, m, donkey, donkeys
        poule, poules, f, hen, hens
        canard, canards, m, duck, ducks
        oie, oies, f, goose, geese
        chèvre, chèvres, f, goat, goats
        hamster, hamsters, m, hamster, hamsters
        tortue, tortues, f, turtle, turtles
        agneau, agneaux, m, lamb, lambs
    """),
    "wild": _nouns("""
        oiseau, oiseaux, m, bird, birds
        hibou, hiboux, m, owl, owls
        hérisson, hérissons, m, hedgehog, hedgehogs
        loup, loups, m, wolf, wolves
        renard, renards, m, fox, foxes
        éléphant, éléphants, m, elephant, elephants
        tigre, tigres, m, tiger, tigers
        singe, singes, m, monkey, monkeys
        écureuil, écureuils, m, squirrel, squirrels
        hirondelle, hirondelles, f, swallow, swallows
        grenouille, grenouilles, f, frog, frogs
        girafe, girafes, f, giraffe, giraffes
    """),
    "food": _nouns("""
        pomme, pommes, f, apple, apples
        poire, poires, f, pear, pears
        orange, oranges, f, orange, oranges
        banane, bananes, f, banana, bananas
        tomate, tomates, f, tomato, tomatoes
        carotte, carottes, f, carrot, carrots
        haricot, haricots, m, bean, beans
        oignon, oignons, m, onion, onions
        œuf, œufs, m, egg, eggs
        huître, huîtres, f, oyster, oysters
        gâteau, gâteaux, m, cake, cakes
        omelette, omelettes, f, omelette, omelettes
        crêpe, crêpes, f, pancake, pancakes
        abricot, abricots, m, apricot, apricots
        sandwich, sandwichs, m, sandwich, sandwiches
    """),
    "thing": _nouns("""
        table, tables, f, table, tables
        chaise, chaises, f, chair, chairs
        lampe, lampes, f, lamp, lamps
        clé, clés, f, key, keys
        sac, sacs, m, bag, bags
        montre, montres, f, watch, watches
        stylo, stylos, m, pen, pens
        couteau, couteaux, m, knife, knives
        marteau, marteaux, m, hammer, hammers
        horloge, horloges, f, clock, clocks
        miroir, miroirs, m, mirror, mirrors
        assiette, assiettes, f, plate, plates
        bouteille, bouteilles, f, bottle, bottles
        parapluie, parapluies, m, umbrella, umbrellas
        boîte, boîtes, f, box, boxes
        panier, paniers, m, basket, baskets
        valise, valises, f, suitcase, suitcases
        hache, haches, f, axe, axes
        harpe, harpes, f, harp, harps
        hamac, hamacs, m, hammock, hammocks
        échelle, échelles, f, ladder, ladders
        ordinateur, ordinateurs, m, computer, computers
        guitare, guitares, f, guitar, guitars
        jouet, jouets, m, toy, toys
        bijou, bijoux, m, jewel, jewels
        cadeau, cadeaux, m, present, presents
        drapeau, drapeaux, m, flag, flags
    """),
    "text": _nouns("""
        livre, livres, m, book, books
        journal, journaux, m, newspaper, newspapers
        magazine, magazines, m, magazine, magazines
        dictionnaire, dictionnaires, m, dictionary, dictionaries
    """),
    "letter": _nouns("""
        lettre, lettres, f, letter, letters
        roman, romans, m, novel, novels
        poème, poèmes, m, poem, poems
        article, articles, m, article, articles
        histoire, histoires, f, story, stories
        message, messages, m, message, messages
        chanson, chansons, f, song, songs
    """),
    "clothes": _nouns("""
        chemise, chemises, f, shirt, shirts
        robe, robes, f, dress, dresses
        manteau, manteaux, m, coat, coats
        chapeau, chapeaux, m, hat, hats
        jupe, jupes, f, skirt, skirts
        veste, vestes, f, jacket, jackets
        écharpe, écharpes, f, scarf, scarves
        uniforme, uniformes, m, uniform, uniforms
        cravate, cravates, f, tie, ties
        ceinture, ceintures, f, belt, belts
    """),
    "vehicle": _nouns("""
        voiture, voitures, f, car, cars
        vélo, vélos, m, bicycle, bicycles
        bateau, bateaux, m, boat, boats
        camion, camions, m, lorry, lorries
        avion, avions, m, plane, planes
        hélicoptère, hélicoptères, m, helicopter, helicopters
        moto, motos, f, motorbike, motorbikes
    """),
    "sight": _nouns("""
        château, châteaux, m, castle, castles
        musée, musées, m, museum, museums
        église, églises, f, church, churches
        village, villages, m, village, villages
        ville, villes, f, town, towns
        île, îles, f, island, islands
        jardin, jardins, m, garden, gardens
        maison, maisons, f, house, houses
        usine, usines, f, factory, factories
        hôtel, hôtels, m, hotel, hotels
        tour, tours, f, tower, towers
    """),
}  # fmt: skip

# French, gender, English: what is not counted. The partitive is "some".
MASSES = {
    "food": _masses("""
        pain, m, bread
        fromage, m, cheese
        beurre, m, butter
        riz, m, rice
        viande, f, meat
        poisson, m, fish
        salade, f, salad
        chocolat, m, chocolate
        confiture, f, jam
        miel, m, honey
    """),
    "drink": _masses("""
        eau, f, water
        lait, m, milk
        café, m, coffee
        thé, m, tea
        limonade, f, lemonade
        jus d'orange, m, orange juice
    """),
}  # fmt: skip

COLOURS = _adjectives("""
    rouge, rouge, rouges, rouges, red
    noir, noire, noirs, noires, black
    blanc, blanche, blancs, blanches, white
    bleu, bleue, bleus, bleues, blue
    vert, verte, verts, vertes, green
    jaune, jaune, jaunes, jaunes, yellow
    gris, grise, gris, grises, grey
    brun, brune, bruns, brunes, brown
    orange, orange, orange, orange, orange
""")
FURS = [colour for colour in COLOURS if colour.en in ("black", "white", "grey", "brown")]

# masculine, feminine, their plurals, English, more (where it is compared)
SIZES = _adjectives("""
    petit, petite, petits, petites, small, smaller
    grand, grande, grands, grandes, big, bigger
    beau, belle, beaux, belles, beautiful, more beautiful
    vieux, vieille, vieux, vieilles, old, older
    nouveau, nouvelle, nouveaux, nouvelles, new, newer
    joli, jolie, jolis, jolies, pretty, prettier
""")
QUALITIES = _adjectives("""
    lourd, lourde, lourds, lourdes, heavy, heavier
    léger, légère, légers, légères, light, lighter
    cher, chère, chers, chères, expensive, more expensive
    propre, propre, propres, propres, clean, cleaner
    étrange, étrange, étranges, étranges, strange, stranger
    solide, solide, solides, solides, sturdy, sturdier
    utile, utile, utiles, utiles, useful, more useful
""")
TRAITS = _adjectives("""
    grand, grande, grands, grandes, tall, taller
    petit, petite, petits, petites, short, shorter
    jeune, jeune, jeunes, jeunes, young, younger
    âgé, âgée, âgés, âgées, old, older
    fort, forte, forts, fortes, strong, stronger
    rapide, rapide, rapides, rapides, fast, faster
    patient, patiente, patients, patientes, patient, more patient
    prudent, prudente, prudents, prudentes, careful, more careful
    curieux, curieuse, curieux, curieuses, curious, more curious
    courageux, courageuse, courageux, courageuses, brave, braver
    généreux, généreuse, généreux, généreuses, generous, more generous
    poli, polie, polis, polies, polite, more polite
    timide, timide, timides, timides, shy, shyer
    optimiste, optimiste, optimistes, optimistes, optimistic, more optimistic
""")
# Each shows its gender, so that a woman's "je suis contente" differs from a man's.
FEELINGS = _adjectives("""
    content, contente, contents, contentes, happy
    fatigué, fatiguée, fatigués, fatiguées, tired
    inquiet, inquiète, inquiets, inquiètes, worried
    occupé, occupée, occupés, occupées, busy
    surpris, surprise, surpris, surprises, surprised
    nerveux, nerveuse, nerveux, nerveuses, nervous
    fier, fière, fiers, fières, proud
    déçu, déçue, déçus, déçues, disappointed
""")

# kind: (the few that stand before the noun, those after it, those after it that one before may go with)
ADJECTIVES = {
    "person": (
        _adjectives("jeune, jeune, jeunes, jeunes, young\nvieux, vieille, vieux, vieilles, old"),
        [trait for trait in TRAITS if trait.en in "patient careful curious brave generous polite shy".split()],
        [trait for trait in TRAITS if trait.en in ("patient", "brave", "shy")],
    ),
    "pet": (SIZES[:4], FURS, FURS),
    "wild": (
        SIZES[:4],
        _adjectives("dangereux, dangereuse, dangereux, dangereuses, dangerous\n"
                    "sauvage, sauvage, sauvages, sauvages, wild"),
        [],
    ),
    "food": (
        SIZES[:2] + _adjectives("bon, bonne, bons, bonnes, good"),
        _adjectives("frais, fraîche, frais, fraîches, fresh\ndélicieux, délicieuse, délicieux, délicieuses, delicious\n"
                    "froid, froide, froids, froides, cold"),
        [],
    ),
    "thing": (SIZES, QUALITIES + COLOURS, COLOURS),
    "text": (SIZES[3:5], QUALITIES[:3] + QUALITIES[-1:], []),
    "letter": (
        SIZES[2:5] + _adjectives("long, longue, longs, longues, long\ncourt, courte, courts, courtes, short"),
        _adjectives("intéressant, intéressante, intéressants, intéressantes, interesting\n"
                    "amusant, amusante, amusants, amusantes, funny\n"
                    "difficile, difficile, difficiles, difficiles, difficult\n"
                    "célèbre, célèbre, célèbres, célèbres, famous"),
        [],
    ),
    "clothes": (SIZES, COLOURS + QUALITIES[2:4], COLOURS),
    "vehicle": (SIZES, COLOURS + QUALITIES[2:5], COLOURS),
    "sight": (
        SIZES,
        _adjectives("célèbre, célèbre, célèbres, célèbres, famous\ncalme, calme, calmes, calmes, quiet\n"
                    "moderne, moderne, modernes, modernes, modern"),
        [],
    ),
}  # fmt: skip

# "vieille fille" and "vieux garçon" are people who never married.
NEVER_OLD = ("boy", "girl", "child")

# infinitive: je tu il nous vous ils; participle
FRENCH_VERBS = dict(_rows("""
    manger: mange manges mange mangeons mangez mangent; mangé
    goûter: goûte goûtes goûte goûtons goûtez goûtent; goûté
    servir: sers sers sert servons servez servent; servi
    partager: partage partages partage partageons partagez partagent; partagé
    boire: bois bois boit buvons buvez boivent; bu
    acheter: achète achètes achète achetons achetez achètent; acheté
    vendre: vends vends vend vendons vendez vendent; vendu
    choisir: choisis choisis choisit choisissons choisissez choisissent; choisi
    vouloir: veux veux veut voulons voulez veulent; voulu
    chercher: cherche cherches cherche cherchons cherchez cherchent; cherché
    voir: vois vois voit voyons voyez voient; vu
    prendre: prends prends prend prenons prenez prennent; pris
    trouver: trouve trouves trouve trouvons trouvez trouvent; trouvé
    perdre: perds perds perd perdons perdez perdent; perdu
    cacher: cache caches cache cachons cachez cachent; caché
    apporter: apporte apportes apporte apportons apportez apportent; apporté
    nettoyer: nettoie nettoies nettoie nettoyons nettoyez nettoient; nettoyé
    oublier: oublie oublies oublie oublions oubliez oublient; oublié
    utiliser: utilise utilises utilise utilisons utilisez utilisent; utilisé
    lire: lis lis lit lisons lisez lisent; lu
    ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent; ouvert
    emprunter: emprunte empruntes emprunte empruntons empruntez empruntent; emprunté
    écrire: écris écris écrit écrivons écrivez écrivent; écrit
    finir: finis finis finit finissons finissez finissent; fini
    traduire: traduis traduis traduit traduisons traduisez traduisent; traduit
    comprendre: comprends comprends comprend comprenons comprenez comprennent; compris
    porter: porte portes porte portons portez portent; porté
    mettre: mets mets met mettons mettez mettent; mis
    laver: lave laves lave lavons lavez lavent; lavé
    essayer: essaie essaies essaie essayons essayez essaient; essayé
    réparer: répare répares répare réparons réparez réparent; réparé
    louer: loue loues loue louons louez louent; loué
    dessiner: dessine dessines dessine dessinons dessinez dessinent; dessiné
    nourrir: nourris nourris nourrit nourrissons nourrissez nourrissent; nourri
    entendre: entends entends entend entendons entendez entendent; entendu
    regarder: regarde regardes regarde regardons regardez regardent; regardé
    protéger: protège protèges protège protégeons protégez protègent; protégé
    visiter: visite visites visite visitons visitez visitent; visité
    photographier: photographie photographies photographie photographions photographiez photographient; photographié
    décrire: décris décris décrit décrivons décrivez décrivent; décrit
    attendre: attends attends attend attendons attendez attendent; attendu
    aider: aide aides aide aidons aidez aident; aidé
    inviter: invite invites invite invitons invitez invitent; invité
    écouter: écoute écoutes écoute écoutons écoutez écoutent; écouté
    remercier: remercie remercies remercie remercions remerciez remercient; remercié
    appeler: appelle appelles appelle appelons appelez appellent; appelé
    aimer: aime aimes aime aimons aimez aiment; aimé
    adorer: adore adores adore adorons adorez adorent; adoré
    préférer: préfère préfères préfère préférons préférez préfèrent; préféré
    détester: déteste détestes déteste détestons détestez détestent; détesté
    donner: donne donnes donne donnons donnez donnent; donné
    montrer: montre montres montre montrons montrez montrent; montré
    envoyer: envoie envoies envoie envoyons envoyez envoient; envoyé
    prêter: prête prêtes prête prêtons prêtez prêtent; prêté
    offrir: offre offres offre offrons offrez offrent; offert
    penser: pense penses pense pensons pensez pensent; pensé
    savoir: sais sais sait savons savez savent; su
    espérer: espère espères espère espérons espérez espèrent; espéré
    croire: crois crois croit croyons croyez croient; cru
    dire: dis dis dit disons dites disent; dit
    pouvoir: peux peux peut pouvons pouvez peuvent; pu
    devoir: dois dois doit devons devez doivent; dû
    dormir: dors dors dort dormons dormez dorment; dormi
    chanter: chante chantes chante chantons chantez chantent; chanté
    danser: danse danses danse dansons dansez dansent; dansé
    nager: nage nages nage nageons nagez nagent; nagé
    courir: cours cours court courons courez courent; couru
    rire: ris ris rit rions riez rient; ri
    pleurer: pleure pleures pleure pleurons pleurez pleurent; pleuré
    travailler: travaille travailles travaille travaillons travaillez travaillent; travaillé
    étudier: étudie étudies étudie étudions étudiez étudient; étudié
    voyager: voyage voyages voyage voyageons voyagez voyagent; voyagé
    cuisiner: cuisine cuisines cuisine cuisinons cuisinez cuisinent; cuisiné
    sourire: souris souris sourit sourions souriez sourient; souri
    habiter: habite habites habite habitons habitez habitent; habité
    enseigner: enseigne enseignes enseigne enseignons enseignez enseignent; enseigné
    aller: vais vas va allons allez vont; allé
    revenir: reviens reviens revient revenons revenez reviennent; revenu
    rester: reste restes reste restons restez restent; resté
    arriver: arrive arrives arrive arrivons arrivez arrivent; arrivé
    lever: lève lèves lève levons levez lèvent; levé
    coucher: couche couches couche couchons couchez couchent; couché
    réveiller: réveille réveilles réveille réveillons réveillez réveillent; réveillé
    habiller: habille habilles habille habillons habillez habillent; habillé
    reposer: repose reposes repose reposons reposez reposent; reposé
    promener: promène promènes promène promenons promenez promènent; promené
    avoir: ai as a avons avez ont; eu
    connaître: connais connais connaît connaissons connaissez connaissent; connu
""", ":"))  # fmt: skip

# base, third person, past, participle, -ing
ENGLISH_VERBS = {forms.split()[0]: forms.split() for forms in """
    eat eats ate eaten eating
    taste tastes tasted tasted tasting
    serve serves served served serving
    share shares shared shared sharing
    drink drinks drank drunk drinking
    buy buys bought bought buying
    sell sells sold sold selling
    choose chooses chose chosen choosing
    want wants wanted wanted wanting
    look looks looked looked looking
    see sees saw seen seeing
    take takes took taken taking
    find finds found found finding
    lose loses lost lost losing
    hide hides hid hidden hiding
    bring brings brought brought bringing
    clean cleans cleaned cleaned cleaning
    forget forgets forgot forgotten forgetting
    use uses used used using
    read reads read read reading
    open opens opened opened opening
    borrow borrows borrowed borrowed borrowing
    write writes wrote written writing
    finish finishes finished finished finishing
    translate translates translated translated translating
    understand understands understood understood understanding
    wear wears wore worn wearing
    put puts put put putting
    wash washes washed washed washing
    try tries tried tried trying
    repair repairs repaired repaired repairing
    rent rents rented rented renting
    draw draws drew drawn drawing
    feed feeds fed fed feeding
    hear hears heard heard hearing
    watch watches watched watched watching
    protect protects protected protected protecting
    visit visits visited visited visiting
    photograph photographs photographed photographed photographing
    describe describes described described describing
    wait waits waited waited waiting
    help helps helped helped helping
    invite invites invited invited inviting
    listen listens listened listened listening
    thank thanks thanked thanked thanking
    call calls called called calling
    like likes liked liked liking
    love loves loved loved loving
    prefer prefers preferred preferred preferring
    hate hates hated hated hating
    give gives gave given giving
    show shows showed shown showing
    send sends sent sent sending
    lend lends lent lent lending
    think thinks thought thought thinking
    know knows knew known knowing
    hope hopes hoped hoped hoping
    believe believes believed believed believing
    say says said said saying
    can can could could can
    have has had had having
    sleep sleeps slept slept sleeping
    sing sings sang sung singing
    dance dances danced danced dancing
    swim swims swam swum swimming
    run runs ran run running
    laugh laughs laughed laughed laughing
    cry cries cried cried crying
    work works worked worked working
    study studies studied studied studying
    travel travels travelled travelled travelling
    cook cooks cooked cooked cooking
    smile smiles smiled smiled smiling
    live lives lived lived living
    teach teaches taught taught teaching
    go goes went gone going
    come comes came come coming
    stay stays stayed stayed staying
    arrive arrives arrived arrived arriving
    get gets got got getting
    wake wakes woke woken waking
    rest rests rested rested resting
""".strip().splitlines()}  # fmt: skip

# "I see", never "I am seeing"; some here because "I am finding a key" is rare
SIMPLE = (
    "want see find lose forget understand hear like love prefer hate think know hope "
    "believe say can have"
).split()


def _verbs(pairs):
    """ "chercher look for, …": the first English word has forms, what follows it stays: look for, looks for."""
    verbs = []
    for pair in pairs.split(", "):
        infinitive, base, *after = pair.split()
        present, participle = FRENCH_VERBS[infinitive].split("; ")
        forms = [" ".join([form, *after]) for form in ENGLISH_VERBS[base]]
        verbs.append(Verb(infinitive, tuple(present.split()), participle, *forms, base in SIMPLE))
    return verbs


# by what the object is; goods can be bought and sold
VERBS = {
    "food": _verbs("manger eat, goûter taste, servir serve, partager share"),
    "drink": _verbs("boire drink, servir serve"),
    "goods": _verbs("acheter buy, vendre sell, choisir choose, vouloir want, chercher look for, voir see"),
    "thing": _verbs(
        "prendre take, trouver find, perdre lose, cacher hide, apporter bring, nettoyer clean, oublier forget, "
        "utiliser use"
    ),
    "text": _verbs("lire read, ouvrir open, emprunter borrow"),
    "letter": _verbs("lire read, écrire write, finir finish, traduire translate, comprendre understand"),
    "clothes": _verbs("porter wear, mettre put on, laver wash, essayer try on"),
    "vehicle": _verbs("réparer repair, louer rent, laver wash, dessiner draw"),
    "animal": _verbs("nourrir feed, entendre hear, regarder watch, protéger protect, dessiner draw, voir see"),
    "sight": _verbs("visiter visit, voir see, photographier photograph, décrire describe"),
    "people": _verbs(
        "attendre wait for, aider help, inviter invite, écouter listen to, remercier thank, appeler call, "
        "chercher look for, voir see"
    ),
    "like": _verbs("aimer like, adorer love, préférer prefer, détester hate"),
    "give": _verbs("donner give, montrer show, vendre sell, envoyer send, prêter lend, offrir give"),
    "say": _verbs("penser think, savoir know, espérer hope, croire believe, dire say"),
    "modal": _verbs("vouloir want to, pouvoir can, devoir have to"),
}
HAVE, KNOW = _verbs("avoir have, connaître know")
DOING_ALONE = _verbs(
    "dormir sleep, chanter sing, danser dance, nager swim, courir run, rire laugh, pleurer cry, "
    "travailler work, étudier study, voyager travel, cuisiner cook, sourire smile"
)

# How one can be for years; the French present becomes the English present perfect.
STATES = _verbs("habiter live, travailler work, enseigner teach, étudier study")

# Their passé composé takes être, and the participle agrees with the subject.
MOVES = _verbs("aller go to, revenir come back to, rester stay in, arriver arrive in")
BORN = ("né", "born")

# se lever, …
REFLEXIVES = _verbs(
    "lever get up, coucher go to bed, réveiller wake up, habiller get dressed, reposer rest, "
    "promener go for a walk"
)

PRONOUNS = [
    Phrase("je", "I", 0, "m"), Phrase("tu", "you", 1, "m"), Phrase("il", "he", 2, "m"), Phrase("elle", "she", 2, "f"),
    Phrase("nous", "we", 3, "m"), Phrase("vous", "you", 4, "m"), Phrase("ils", "they", 5, "m"),
    Phrase("elles", "they", 5, "f"),
]  # fmt: skip
SPEAKERS = [Phrase("je", "I", 0, "f"), Phrase("nous", "we", 3, "f")]      # women; only where the French shows it
NAMES = [
    Phrase(name, name, 2, gender)
    for names, gender in [
        ("Alice Emma Hélène Julie Marie Sophie", "f"),
        ("Antoine Émile Martin Olivier Paul Victor", "m"),
    ]
    for name in names.split()
]

CITIES = [Place(fr, f"à {fr}", en) for fr, en in _rows("""
    Paris, Paris
    Lyon, Lyon
    Londres, London
    Rome, Rome
    Berlin, Berlin
    Genève, Geneva
    Bruxelles, Brussels
    Lisbonne, Lisbon
    Madrid, Madrid
    Vienne, Vienna
    Venise, Venice
    Athènes, Athens
    Varsovie, Warsaw
    Oslo, Oslo
    Montréal, Montreal
""", ",")]  # fmt: skip

# name | there | English
COUNTRIES = [Place(*row) for row in _rows("""
    la France | en France | France
    l'Italie | en Italie | Italy
    l'Espagne | en Espagne | Spain
    l'Allemagne | en Allemagne | Germany
    la Suisse | en Suisse | Switzerland
    la Belgique | en Belgique | Belgium
    la Hongrie | en Hongrie | Hungary
    le Canada | au Canada | Canada
    le Japon | au Japon | Japan
    le Portugal | au Portugal | Portugal
    le Brésil | au Brésil | Brazil
    le Mexique | au Mexique | Mexico
    le Maroc | au Maroc | Morocco
    les États-Unis | aux États-Unis | the United States
    les Pays-Bas | aux Pays-Bas | the Netherlands
""")]  # fmt: skip

# Buildings and the like, reached and stayed at with "à": name | there | English | at or in
SITES = [Place(*row) for row in _rows("""
    le marché | à le marché | the market | at
    la gare | à la gare | the station | at
    l'hôpital | à l'hôpital | the hospital | at
    l'hôtel | à l'hôtel | the hotel | at
    l'aéroport | à l'aéroport | the airport | at
    l'université | à l'université | the university | at
    le musée | à le musée | the museum | at
    le restaurant | à le restaurant | the restaurant | at
    le théâtre | à le théâtre | the theatre | at
    le cinéma | à le cinéma | the cinema | at
    la plage | à la plage | the beach | at
    la bibliothèque | à la bibliothèque | the library | at
    la piscine | à la piscine | the swimming pool | at
    le bureau | à le bureau | the office | at
""")]  # fmt: skip

PREPOSITIONS = [
    ("dans", "in"), ("sur", "on"), ("sous", "under"), ("devant", "in front of"), ("derrière", "behind"),
    ("à côté de", "next to"), ("près de", "near"), ("loin de", "far from"),
]  # fmt: skip

PAST_TIMES = [
    ("hier", "yesterday"), ("hier soir", "last night"), ("ce matin", "this morning"),
    ("la semaine dernière", "last week"), ("l'été dernier", "last summer"), ("lundi dernier", "last Monday"),
    ("l'année dernière", "last year"), ("", ""),
]  # fmt: skip
FUTURE_TIMES = [
    ("demain", "tomorrow"), ("ce soir", "tonight"), ("demain matin", "tomorrow morning"),
    ("la semaine prochaine", "next week"), ("l'année prochaine", "next year"), ("vendredi prochain", "next Friday"),
    ("", ""),
]  # fmt: skip
# Not toujours alone, which is still or always.
OFTEN = [("souvent", "often"), ("presque toujours", "almost always"), ("parfois", "sometimes"), ("rarement", "rarely")]
MONTHS = [
    ("en janvier", "in January"), ("en mars", "in March"), ("en avril", "in April"), ("en mai", "in May"),
    ("en juillet", "in July"), ("en août", "in August"), ("en octobre", "in October"), ("en décembre", "in December"),
    ("en été", "in summer"), ("en automne", "in autumn"), ("en hiver", "in winter"), ("au printemps", "in spring"),
]  # fmt: skip
# il … | rest | it … | rest: the adverb stands between, "il fait souvent froid", "it is often cold"
WEATHER = [(row + [""] * 4)[:4] for row in _rows("""
    il fait | froid | it is | cold
    il fait | chaud | it is | hot
    il fait | beau | the weather is | fine
    il y a | du vent | it is | windy
    il y a | du brouillard | it is | foggy
    il pleut | | it | rains
    il neige | | it | snows
""")]  # fmt: skip
