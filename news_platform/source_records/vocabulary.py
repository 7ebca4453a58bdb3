"""Words that tell which language a text speaks, as opposed to the names that it contains."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import repeat

# Words that hardly any other language has and that occur in most sentences of the language.
_ENGLISH = """
about after and any are because been before between but can could did does each every from get had
has have help here how if into its just know learn like made make many may more must need new now of
only other our out over people should since some such than that the their them then there these they
this those through time until up upon use used using very want was well were what when where which
while who whose why will with within without work would year years you your
"""
COMMON_WORDS = {"en": frozenset(_ENGLISH.split())}

# Articles, prepositions and the like of languages in Latin script that are not English words. One
# of them is a reason to run the detector, not proof: they occur in names too.
_FOREIGN = """
aan ako alla als ang au auf aus aux avec bei bij bir bu cette che chez como cu dalam dan dans dari
das de degli dei del della delle dem den dengan der des det di dla dos du een egy ein eine einer el
els em en es et ett fra für fuer gan gli het hogy ikke il ile im ini ist itu ja kami kwa la las
le les lo los med mga na nad nel nella ng nicht nie niet noi nos nostra nostro notre nous nuestra
nuestro och og op oraz où para på pada pe por prin qui que quel ses sie sind sobre sont sowie
su sua sur sus sy te tidak till til um un una und une uno unser untuk van ve voor vom von vos votre
vous wir y ya yang yn yr za zijn zu zum zur
"""
FOREIGN_WORDS = frozenset(_FOREIGN.split())

# Those of them that do not occur in the names of persons and places, as "de" and "van" do.
_JOINING = """
auf aus avec bei cette como dalam dans degli dei delle dengan dla ein eine et ett für fuer het hogy
ikke ile im ist mga nad nel nella nicht niet notre nous nuestra nuestro och og oraz para por pour
que qui sind sobre sont sowie sur till und untuk voor vous wir y yang yn zijn zur
"""
# Words of institutions that are not English words, by their beginnings: the detector takes a list
# of Italian names for Italian as surely as a list of Italian departments.
_BEGINNINGS = """
abteilung admisi administraci afdeling allgemein amministra antigu arbeits arquitectura avdeling
avdelning bachillerato beaux bellas betriebs bezpie bibliothèque bibliotek bibliothek biblioteca
bilgisayar bilim biología biologia biologie bölüm centro chemie chimica chimie ciencia ciência
ciències civil- contabil derecho departamento departament département departement didaktik
dipartiment direcci direito diritto dret droit école economía économi edebiyat educació educação
educazione egyetem eğitim elektrotechni empresa enfermer engenhari enseignement enstit escola
escuela estudi étud étudiant facolt facultad facultat faculté faculteit faculd fachbereich
fakult filología filologia filosof filozof física fisica fizik fizyk formation forschung français
fysik geistes geneeskunde germanist geschicht gesellschaft gestión gesundheit gestão gwyddor
handels hochschul högskol høgskol hukuk histoire historia história humanidad humanité idiomas
informática informatik informatique ingegner ingenier ingénier ingenieur institución institutionen
institutt instituto instytut intézet investigaci istituto juridi katedr kemi konservato kultur-
kulttuur kunst laitos langues lehrstuhl lenguas letras letteratura lettere letteren lettres lingue
linguistique línguas literatura maschinenbau matemátic matematic matematik matematyk mathematik
mathématiques médecine medicina medizin mühendis música musica musique natur- naturwissen
natuurkunde nauk ngành noticias nutrición oddělen œuvre oficina onderwijs onderzoek opleiding
ollscoil osasto pädagog pedagog pharmacie physik physique postgrado prawa prifysgol procuradur
profesor professores psicolog psychologie química quimica rechts recherche rectorado recursos
rekrut relaciones ricerca roinn samhäll sanat sciences-po scienz scuola secretaría secrétariat
segreteri servicio serviço servizi sociales sociais sociali sociología sociologia sociologie
sprach storia študi studenten studierend studium sundheds tanszék teatro tecnolog técnic techniek
technologie théâtre théolog tiedekun titulaci toegepast trabajo tudomány turismo ubezpiecz
universidad università université universität universiteit universitet uniwersytet vakgroep vaka
vedoucí verwaltung vetenskap vicerrector videnskab vitenskap volks vysok werktuig wetenschap
wijsbegeert wirtschaft wiskunde wissenschaft wydzia yliopist ysgol zahnmed zakład ústav
"""
_ENGLISH_BEGINNINGS = """
academ administrat department engineering faculty facilit humanities laborator languages librar
medical medicine office research science school service studies university
"""

_STRIPPED = ".,:;()|–-•\"'’"
_SPOKEN = {
    "en": (COMMON_WORDS["en"], tuple(_ENGLISH_BEGINNINGS.split())),
    "": (frozenset(_JOINING.split()), tuple(_BEGINNINGS.split())),
}


# Pages share most of their words, so nearly every word is looked up instead of examined.
@lru_cache(maxsize=32_768)
def _is_spoken(word: str, code: str) -> bool:
    words, beginnings = _SPOKEN[code]
    bare = word.strip(_STRIPPED)
    return bare in words or bare.startswith(beginnings)


def speaks(words: Iterable[str], code: str) -> bool:
    """Return whether some of these words, in lower case, are words of a language, not names.

    Of the languages other than English it is not told which one.
    """
    known = code if code in _SPOKEN else ""
    return any(map(_is_spoken, words, repeat(known)))
